# Memory against batch or context; bar i stands at x = i, and is among the boxes of the overlay.
# unfit.tsv from_position to_position: columns that do not fit

set multiplot
set lmargin at screen main_left
set rmargin at screen main_right
set bmargin at screen main_bottom
set tmargin at screen main_top
set xrange [main_x0:main_x1]
set yrange [main_y0:main_y1]
set format y '%.10g'
set xtics font face_normal scale 0
set ytics font face_normal
if (!dumb) { set grid ytics linestyle 30 }
set style fill solid 1 noborder
plot NaN notitle, \
     'unfit.tsv' using (dumb ? NaN : column('from_position')):(main_y0):(column('from_position')): \
         (column('to_position')):(main_y0):(main_y1) notitle with boxxyerror fillcolor rgb '#ececec'
load 'overlay.gp'
unset multiplot
