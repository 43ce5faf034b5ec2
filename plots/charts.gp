# Lines side by side: latency against throughput, cost against rate, parts of requests against time.
# chartK_N.tsv x y kept: chart K, line N; kept is 1 where every promise is kept, which gets a marker
# ticsK: places of tics of a logarithmic axis, joined by commas; '': gnuplot's own
# limitK: what is promised of x, the ground up to it is shaded; 0: nothing is

set multiplot
set xtics font face_normal
set ytics font face_normal
set datafile missing NaN
if (!dumb) { set grid xtics ytics linestyle 30 }

do for [k = 1:charts] {
    of = sprintf('chart%d', k)
    set lmargin at screen value(of . '_left')
    set rmargin at screen value(of . '_right')
    set bmargin at screen value(of . '_bottom')
    set tmargin at screen value(of . '_top')
    left = value(of . '_x0')
    set xrange [left:value(of . '_x1')]
    set yrange [value(of . '_y0'):value(of . '_y1')]
    unset logscale
    unset object
    if (value(of . '_log_x')) { set logscale x 10 }
    set format x '%.10g'
    tics_at = value(sprintf('tics%d', k))
    if (strlen(tics_at)) { eval sprintf('set xtics (%s)', tics_at) } else { set xtics autofreq }
    set format y '%.10g'
    limit = value(sprintf('limit%d', k))
    if (limit > left && !dumb) {
        set object 1 rectangle from first left, graph 0 to first limit, graph 1 \
            behind fillcolor rgb '#e7f0e2' fillstyle solid noborder
    }
    file(i) = sprintf('chart%d_%d.tsv', k, i)
    plot NaN notitle, \
         for [i = 1:series_n] file(i) using (column('x')):(column('y')) notitle with lines linestyle i, \
         for [i = 1:series_n] file(i) using (column('kept') == 1 && points_shown > 0 ? column('x') : NaN):(column('y')) \
             notitle with points linestyle i pointsize 0.6
}
unset object
load 'overlay.gp'
unset multiplot
