# Calibrated over measured times against measured ones, log-log.
# points.tsv measured ratio point rgb: one row each

set multiplot
set lmargin at screen main_left
set rmargin at screen main_right
set bmargin at screen main_bottom
set tmargin at screen main_top
set logscale xy
set xrange [main_x0:main_x1]
set yrange [main_y0:main_y1]
set format x (dumb ? '%.0s%c' : '%.0s %cs')
set format y '%g'
set xtics font face_normal
set ytics (0.2, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 3, 5) font face_normal
if (!dumb) { set grid xtics ytics linestyle 30 }
plot 1 notitle with lines linewidth 1.5 linecolor rgb '#000000', \
     'points.tsv' using (column('measured')):(column('ratio')):(column('point')):(column('rgb')) \
         notitle with points pointtype variable pointsize 0.45 linewidth 1 linecolor rgb variable
load 'overlay.gp'
unset multiplot
