#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/report.h"

static const char STYLE[] =
    ":root{color-scheme:light dark;--ground:#fff;--ink:#1a1a1a;--soft:#555;--line:#d5d5d5;--shade:#e7f0e2;"
    "--mark:#f4f4f4;--s1:#0072b2;--s2:#b84a00;--s3:#000;--s4:#00785a;--s5:#a4487d;--s6:#8a6100;--s7:#2a7fb0;--s8:#666}"
    "\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#16181b;--ink:#e8e8e8;--soft:#a8a8a8;--line:#3a3d42;"
    "--shade:#223322;--mark:#22252a;--s1:#56b4e9;--s2:#ff8a3d;--s3:#fff;--s4:#2fd1a2;--s5:#e59ac8;--s6:#f0c04a;"
    "--s7:#8ecbf0;--s8:#b0b0b0}}\n"
    "body{background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;"
    "padding:1rem}\n"
    "h1{font-size:1.6rem;line-height:1.25}h2{font-size:1.25rem;margin-top:2.2rem;border-bottom:1px solid "
    "var(--line)}h3{font-size:1.05rem}\n"
    ".key{font-size:1.15rem}.soft{color:var(--soft)}.warn{border-left:4px solid var(--s2);padding:.3rem .8rem;"
    "background:var(--mark)}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;margin:.8rem 0;font-size:.92rem}\n"
    "caption{text-align:left;color:var(--soft);padding-bottom:.3rem}\n"
    "th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}\n"
    "thead th{border-bottom:2px solid var(--line)}tbody th{font-weight:600}.n{text-align:right;"
    "white-space:nowrap;font-variant-numeric:tabular-nums}\n"
    "pre{background:var(--mark);padding:.7rem;overflow-x:auto;font-size:.82rem;line-height:1.35}\n"
    "code,pre{font-family:ui-monospace,monospace}nav ul{padding-left:1.2rem;columns:2}a{color:var(--s1)}\n"
    "figure{margin:1.2rem 0;break-inside:avoid}figcaption{font-weight:600}svg{width:100%;height:auto;max-width:46rem}\n"
    "svg text{fill:var(--ink);font:12px system-ui,sans-serif}svg .axis{stroke:var(--soft);fill:none}\n"
    "svg .grid{stroke:var(--line);stroke-width:.7}svg .ok{fill:var(--shade)}svg .asked{stroke:var(--ink);"
    "stroke-dasharray:6 4}\n"
    "svg .line{fill:none;stroke-width:2.2}svg .late{fill:none;stroke-width:1.2;stroke-dasharray:3 4}\n"
    ".s1{stroke:var(--s1)}.s2{stroke:var(--s2)}.s3{stroke:var(--s3)}.s4{stroke:var(--s4)}.s5{stroke:var(--s5)}"
    ".s6{stroke:var(--s6)}.s7{stroke:var(--s7)}.s8{stroke:var(--s8)}\n"
    ".f1{fill:var(--s1)}.f2{fill:var(--s6)}.f3{fill:var(--line)}.f4{fill:var(--mark)}svg .part{stroke:var(--ink);"
    "stroke-width:.6}\n"
    ".legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;font-size:.9rem}.legend svg{"
    "width:2.2rem;height:.8rem;vertical-align:middle}\n"
    "@page{size:A4;margin:16mm}@media print{:root{color-scheme:light;--ground:#fff;--ink:#000;--soft:#444;"
    "--line:#bbb;--shade:#e7f0e2;--mark:#f4f4f4;--s1:#0072b2;--s2:#b84a00;--s3:#000;--s4:#00785a;--s5:#a4487d;"
    "--s6:#8a6100;--s7:#2a7fb0;--s8:#666}body{max-width:none;padding:0;font-size:10.5pt}nav{display:none}"
    "h2,h3,caption,figcaption{break-after:avoid}table{font-size:8.5pt}tr,figure,pre.short{break-inside:avoid}pre{white-"
    "space:pre-wrap;font-size:8pt}"
    ".wide{overflow:visible}a{color:inherit;text-decoration:none}}\n";

void report_text(struct out *o, const char *s)
{
    for (size_t i = 0, len = s ? strlen(s) : 0; i < len;) {
        uint32_t code;
        const size_t n = text_utf8_len(s + i, len - i, &code);
        if (n == 0 || (text_is_hostile(code) && code != '\n'))
            out_char(o, '?');
        else if (s[i] == '&')
            out_str(o, "&amp;");
        else if (s[i] == '<')
            out_str(o, "&lt;");
        else if (s[i] == '>')
            out_str(o, "&gt;");
        else if (s[i] == '"')
            out_str(o, "&quot;");
        else if (s[i] == '\'')
            out_str(o, "&#39;");
        else
            out_write(o, s + i, n);
        i += n ? n : 1;
    }
}

void report_put(struct out *o, const char *format, ...)
{
    char text[2048]; /* not a unit */
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    report_text(o, text);
}

/* -- document -- */

static const char *const PARTS[][2] = {{"answer", "The answer"},
                                       {"figures", "Its figures, and how they come about"},
                                       {"command", "Starting it"},
                                       {"memory", "Memory of a GPU"},
                                       {"others", "Runners-up"},
                                       {"fail", "Why others fail"},
                                       {"frontier", "Latency against throughput"},
                                       {"cost", "Cost against rate"},
                                       {"simulation", "Request by request"},
                                       {"inputs", "Inputs"},
                                       {"conventions", "Conventions"},
                                       {"formulas", "Formulas"},
                                       {"method", "Method and errors"}};

void report_begin(struct out *o, const char *title)
{
    out_str(o, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    report_text(o, title);
    out_str(o, "</title>\n<style>\n");
    out_str(o, STYLE);
    out_str(o, "</style>\n</head>\n<body>\n<h1>");
    report_text(o, title);
    out_str(o, "</h1>\n<nav aria-label=\"Contents\">\n<ul>\n");
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        out_printf(o, "<li><a href=\"#%s\">%s</a></li>\n", PARTS[i][0], PARTS[i][1]);
    out_str(o, "</ul>\n</nav>\n<main>\n");
}

void report_section(struct out *o, const char *id, const char *heading)
{
    out_printf(o, "<h2 id=\"%s\">%s</h2>\n", id, heading);
}

void report_end(struct out *o)
{
    out_str(o, "</main>\n<footer>\n<p class=\"soft\">");
    report_put(o, "%s. Sources of devices, models, engines and fits are in its configs; derivations in calc/MODEL.md.",
               commands_tool());
    out_str(o, "</p>\n</footer>\n</body>\n</html>\n");
}

/* -- tables -- */

static const char *class_of(unsigned numbers, size_t i) { return numbers >> i & 1 ? " class=\"n\"" : ""; }

void report_table(struct out *o, const char *caption, size_t n, const char *const *headings, unsigned numbers)
{
    out_str(o, "<div class=\"wide\">\n<table>\n<caption>");
    report_text(o, caption);
    out_str(o, "</caption>\n<thead>\n<tr>");
    for (size_t i = 0; i < n; i++) {
        out_printf(o, "<th scope=\"col\"%s>", class_of(numbers, i));
        report_text(o, headings[i]);
        out_str(o, "</th>");
    }
    out_str(o, "</tr>\n</thead>\n<tbody>\n");
}

void report_row(struct out *o, size_t n, const char *const *cells, unsigned numbers)
{
    out_str(o, "<tr>");
    for (size_t i = 0; i < n; i++) {
        out_printf(o, i ? "<td%s>" : "<th scope=\"row\"%s>", class_of(numbers, i));
        report_text(o, cells[i] ? cells[i] : "-");
        out_str(o, i ? "</td>" : "</th>");
    }
    out_str(o, "</tr>\n");
}

void report_table_end(struct out *o) { out_str(o, "</tbody>\n</table>\n</div>\n"); }
