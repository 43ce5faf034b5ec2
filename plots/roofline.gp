# Arithmetic intensity against attainable FLOP/s.
# roofs.tsv intensity_flops_per_byte rate_flops_per_s to_intensity to_rate look: one straight line a row
# points.tsv intensity_flops_per_byte rate_flops_per_s point rgb: one operator a row

set style line 40 linewidth 2.5 linecolor rgb '#000000' dashtype 1
set style line 41 linewidth 2 linecolor rgb '#555555' dashtype (12, 5)
set style line 42 linewidth 2 linecolor rgb '#555555' dashtype (3, 4)
set style line 43 linewidth 2 linecolor rgb '#555555' dashtype (12, 4, 3, 4)
set style line 44 linewidth 1.2 linecolor rgb '#333333' dashtype (2, 5)
do for [i = 40:44] { set style arrow i nohead linestyle i }

set multiplot
set lmargin at screen main_left
set rmargin at screen main_right
set bmargin at screen main_bottom
set tmargin at screen main_top
set logscale xy
set xrange [main_x0:main_x1]
set yrange [main_y0:main_y1]
set format x '%g'
set format y (dumb ? '%.0s%c' : '%.0s %cFLOP/s')
set xtics font face_normal
set ytics font face_normal
if (!dumb) { set grid xtics ytics mxtics mytics linestyle 30, linestyle 31 }
plot NaN notitle, \
     'roofs.tsv' using (column('intensity_flops_per_byte')):(column('rate_flops_per_s')): \
         (column('to_intensity') - column('intensity_flops_per_byte')): \
         (column('to_rate') - column('rate_flops_per_s')):(column('look')) notitle with vectors arrowstyle variable, \
     'points.tsv' using (column('intensity_flops_per_byte')):(column('rate_flops_per_s')): \
         (column('point')):(column('rgb')) notitle with points pointtype variable pointsize 1.3 linewidth 2 \
         linecolor rgb variable
load 'overlay.gp'
unset multiplot
