# Decode step time (above) and aggregate throughput (below) against batch or context.
# seriesN.tsv at decode_step throughput_tok_per_s mark, N from 1 to series_n, drawn with line style look_N;
# mark is 1 where the point gets its marker
# unfit.tsv from to look: where a series does not fit

set multiplot
set lmargin at screen step_left
set rmargin at screen step_right
set xrange [step_x0:step_x1]
set logscale x 2
set xtics font face_normal
set ytics font face_normal
set format y '%.10g'
set datafile missing NaN
file(i) = sprintf('series%d.tsv', i)
look(i) = int(value(sprintf('look_%d', i)))
if (!dumb) { set grid xtics ytics linestyle 30 }
set style fill transparent solid unfit_shade noborder

do for [panel in 'step rate'] {
    set bmargin at screen value(panel . '_bottom')
    set tmargin at screen value(panel . '_top')
    bottom = value(panel . '_y0')
    top = value(panel . '_y1')
    set yrange [bottom:top]
    unset logscale y
    set ytics autofreq
    if (empty) { unset ytics }
    if (value(panel . '_log_y')) {
        set logscale y 10
        if (top / bottom < 200) { do for [d = -6:12] { set ytics add (2 * 10.0**d, 5 * 10.0**d) } }
    }
    key = panel eq 'step' ? 'decode_step' : 'throughput_tok_per_s'
    if (panel eq 'step') { set format x '' } else { set format x '%.10g' }
    plot NaN notitle, \
         'unfit.tsv' using (dumb ? NaN : column('from')):(bottom):(column('from')): \
             (column('to')):(bottom):(top) notitle with boxxyerror fillcolor rgb '#555555', \
         '' using (column('from')):(bottom):(0):(top - bottom):(100 + column('look')) \
             notitle with vectors arrowstyle variable, \
         for [i = 1:series_n] file(i) using (column('at')):(column(key)) notitle with lines linestyle look(i), \
         for [i = 1:series_n] file(i) using (column('mark') == 1 ? column('at') : NaN):(column(key)) \
             notitle with points linestyle look(i)
}
load 'overlay.gp'
unset multiplot
