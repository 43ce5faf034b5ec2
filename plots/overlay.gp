# Drawn last, over the whole canvas: boxes, strokes, marks and texts at places in canvas units.
# boxes.tsv x0 y0 x1 y1 look; strokes.tsv x y dx dy look; marks.tsv x y point rgb; texts.tsv x y look rgb label,
# where look of a text is 3 * (0 small, 1 normal, 2 title) + (0 left, 1 centred, 2 right).

unset logscale
unset border
unset tics
unset grid
set lmargin at screen 0
set rmargin at screen 1
set bmargin at screen 0
set tmargin at screen 1
set xrange [0:width]
set yrange [0:height]

only(k, key) = column('look') == k ? column(key) : NaN
text_px(k) = k == 0 ? small_px : k == 1 ? normal_px : title_px

# A solid ground first, a hatch over it: patterns are transparent between their lines.
set style fill solid 1 border rgb '#333333'
plot NaN notitle, \
     'boxes.tsv' using (only(1, 'x0')):(column('y0')):(column('x0')):(column('x1')):(column('y0')):(column('y1')) \
         notitle with boxxyerror fillcolor rgb '#2b6a99', \
     '' using (only(2, 'x0')):(column('y0')):(column('x0')):(column('x1')):(column('y0')):(column('y1')) \
         notitle with boxxyerror fillcolor rgb '#f7d38a', \
     '' using (only(2, 'x0')):(column('y0')):(column('x0')):(column('x1')):(column('y0')):(column('y1')) \
         notitle with boxxyerror fillstyle transparent pattern 4 border rgb '#333333' fillcolor rgb '#7a4d00', \
     '' using (only(3, 'x0')):(column('y0')):(column('x0')):(column('x1')):(column('y0')):(column('y1')) \
         notitle with boxxyerror fillcolor rgb '#8fd0b8', \
     '' using (only(3, 'x0')):(column('y0')):(column('x0')):(column('x1')):(column('y0')):(column('y1')) \
         notitle with boxxyerror fillstyle transparent pattern 2 border rgb '#333333' fillcolor rgb '#00543d', \
     '' using (only(4, 'x0')):(column('y0')):(column('x0')):(column('x1')):(column('y0')):(column('y1')) \
         notitle with boxxyerror fillcolor rgb '#ffffff', \
     '' using (only(5, 'x0')):(column('y0')):(column('x0')):(column('x1')):(column('y0')):(column('y1')) \
         notitle with boxxyerror fillcolor rgb '#a9a9a9', \
     '' using (only(6, 'x0')):(column('y0')):(column('x0')):(column('x1')):(column('y0')):(column('y1')) \
         notitle with boxxyerror fillcolor rgb '#d9d9d9', \
     'strokes.tsv' using (column('x')):(column('y')):(column('dx')):(column('dy')):(column('look')) \
         notitle with vectors arrowstyle variable, \
     'marks.tsv' using (column('x')):(column('y')):(column('point')):(column('rgb')) \
         notitle with points pointtype variable pointsize 1.1 linewidth 2 linecolor rgb variable, \
     for [k = 0:2] 'texts.tsv' using (only(3 * k, 'x')):(column('y')):(strcol('label')):(column('rgb')) \
         notitle with labels left textcolor rgb variable font face(text_px(k)), \
     for [k = 0:2] 'texts.tsv' using (only(3 * k + 1, 'x')):(column('y')):(strcol('label')):(column('rgb')) \
         notitle with labels center textcolor rgb variable font face(text_px(k)), \
     for [k = 0:2] 'texts.tsv' using (only(3 * k + 2, 'x')):(column('y')):(strcol('label')):(column('rgb')) \
         notitle with labels right textcolor rgb variable font face(text_px(k))
