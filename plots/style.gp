# What all pictures share: how data files are read, and the looks of series and lines.
# Colours: Okabe and Ito (2008), without yellow; dashes and markers tell the series apart without colour.

set encoding utf8
set datafile separator "\t"
set datafile columnheaders
set datafile commentschars ''
unset key
set tics nomirror front
set border 3 linewidth 1 linecolor rgb '#444444'
set tics textcolor rgb '#000000'

face(px) = sprintf(',%.2f', px * points_per_pixel)
face_normal = face(normal_px)

array series_rgb[12] = [0x0072B2, 0xD55E00, 0x000000, 0x009E73, 0xCC79A7, 0xE69F00, \
                        0x56B4E9, 0x0072B2, 0xD55E00, 0x000000, 0x009E73, 0xCC79A7]
array series_point[12] = [7, 4, 9, 10, 13, 14, 6, 5, 8, 11, 12, 15]

do for [i = 1:12] {
    set style line i linewidth 2 pointsize 1.1 linecolor rgb series_rgb[i] pointtype (dumb ? i : series_point[i])
}
set style line 1 dashtype 1
set style line 2 dashtype (12, 5)
set style line 3 dashtype (2, 4)
set style line 4 dashtype (12, 4, 2, 4)
set style line 5 dashtype (6, 4)
set style line 6 dashtype (16, 4, 2, 4, 2, 4)
set style line 7 dashtype (20, 6)
set style line 8 dashtype (2, 4)
set style line 9 dashtype 1
set style line 10 dashtype (12, 5)
set style line 11 dashtype (2, 8)
set style line 12 dashtype (8, 4, 8, 4, 2, 4)

do for [i = 1:12] { set style arrow i nohead linestyle i }
# Borders of regions: as the series 1 to 12, thinner.
do for [i = 1:12] { set style line 100 + i linewidth 1 linecolor rgb series_rgb[i] }
set style line 101 dashtype 1
set style line 102 dashtype (12, 5)
set style line 103 dashtype (2, 4)
set style line 104 dashtype (12, 4, 2, 4)
set style line 105 dashtype (6, 4)
set style line 106 dashtype (16, 4, 2, 4, 2, 4)
set style line 107 dashtype (20, 6)
set style line 108 dashtype (2, 4)
set style line 109 dashtype 1
set style line 110 dashtype (12, 5)
set style line 111 dashtype (2, 8)
set style line 112 dashtype (8, 4, 8, 4, 2, 4)
do for [i = 101:112] { set style arrow i nohead linestyle i }
set style line 20 linewidth 0.8 linecolor rgb '#777777' dashtype 1
set style line 21 linewidth 3.5 linecolor rgb '#ffffff' dashtype 1
set style line 22 linewidth 2.5 linecolor rgb '#000000' dashtype (14, 5)
do for [i = 20:22] { set style arrow i nohead linestyle i }
set style line 30 linewidth 0.6 linecolor rgb '#d8d8d8' dashtype 1
set style line 31 linewidth 0.4 linecolor rgb '#eeeeee' dashtype 1

