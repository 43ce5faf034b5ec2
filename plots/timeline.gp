# Batch, wait and cache over time, one above the other.
# points.tsv time batch wait blocks: one row for each piece of time

set multiplot
set lmargin at screen batch_left
set rmargin at screen batch_right
set xrange [batch_x0:batch_x1]
set xtics font face_normal
set ytics font face_normal
if (!dumb) { set grid xtics ytics linestyle 30 }

do for [panel in 'batch wait blocks'] {
    set bmargin at screen value(panel . '_bottom')
    set tmargin at screen value(panel . '_top')
    set yrange [0:value(panel . '_y1')]
    set ytics autofreq
    if (dumb) { set ytics value(panel . '_y1') / 2; set format y '%.0f' }
    if (panel eq 'blocks') { set format x '%.10g' } else { set format x '' }
    plot 'points.tsv' using (column('time')):(column(panel)) notitle with steps linestyle 1 dashtype 1
}
load 'overlay.gp'
unset multiplot
