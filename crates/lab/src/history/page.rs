//! The chapters as one HTML file: styles and charts inline, no script, no request.

use super::{Chapter, Outcome, Verdict, hero};
use crate::report::MachineInfo;
use plot::escape;
use plot::figure::{Figure, STYLE_SHEET, WIDTH_DEFAULT, WIDTH_NARROW};

/// Colours are variables, so that the dark scheme replaces them in one place.
const STYLES: &str = "\
:root{color-scheme:light dark;--ground:#fff;--text:#1b1d20;--muted:#55595f;--line:#d8dbdf;
--soft:#f3f5f7;--yes:#00694c;--partly:#8a5a00;--no:#a33b00;--link:#00598c}
@media screen and (prefers-color-scheme:dark){:root{--ground:#16191d;--text:#e8e8e8;
--muted:#b4b9c0;--line:#343a41;--soft:#20252a;--yes:#2cc598;--partly:#f2b632;--no:#f5853f;--link:#6cb8ea}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:16px/1.55 system-ui,-apple-system,'Segoe UI','DejaVu Sans',Arial,sans-serif}
main{max-width:900px;margin:0 auto;padding:24px 16px 64px}
h1{font-size:1.9rem;line-height:1.2;margin:.4em 0}
h2{font-size:1.4rem;line-height:1.25;margin:0 0 .1em}
h3{font-size:1.05rem;margin:1.6em 0 .3em}
p{margin:.6em 0}
a{color:var(--link)}
section{border-top:2px solid var(--line);margin-top:48px;padding-top:28px}
.source,.small{color:var(--muted);font-size:.9rem}
.lead{font-size:1.1rem}
.quote{font-size:1.25rem;line-height:1.35;font-weight:600}
.verdict{border-left:5px solid;background:var(--soft);padding:10px 16px;margin:1em 0}
.verdict .claim{color:var(--text);margin:.2em 0}
.badge{font-weight:700;white-space:nowrap}
.reproduced{color:var(--yes)}.open{color:var(--partly)}.not{color:var(--no)}
figure{margin:1.6em 0}
figure svg{display:block;width:100%;height:auto}
.narrow{display:none}
.scroll{overflow-x:auto;margin:1.2em 0}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums;width:100%}
caption{text-align:left;font-weight:600;padding-bottom:.4em}
th,td{text-align:left;vertical-align:top;padding:5px 12px 5px 0;border-bottom:1px solid var(--line)}
th{color:var(--muted);font-weight:600;vertical-align:bottom}
.n{text-align:right;white-space:nowrap}
.floor td{background:var(--soft);font-style:italic}
ul{padding-left:1.2em;margin:.5em 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.3em 1.2em;margin:.5em 0}
dt{font-weight:600}
dd{margin:0}
@media (max-width:640px){.wide{display:none}.narrow{display:block}
h1{font-size:1.5rem}section .scroll table{min-width:560px}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5em}}
@media print{section{break-before:page}figure,.verdict{break-inside:avoid}}
";

/// The history page as one HTML file: the published accounts, our results, and the verdicts.
pub fn page(chapters: &[Chapter], machine: &MachineInfo) -> String {
    let mut out = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>Published scaling failures, re-run on this machine</title>\n",
    );
    out += &format!("<style>\n{STYLES}{STYLE_SHEET}</style>\n</head>\n<body>\n<main>\n");
    out += &head(chapters, machine);
    for (i, chapter) in chapters.iter().enumerate() {
        out += &section(i + 1, chapter);
    }
    out += "</main>\n</body>\n</html>\n";
    out
}

fn head(chapters: &[Chapter], machine: &MachineInfo) -> String {
    let mut out = String::from(
        "<h1>Published scaling failures, re-run on this machine</h1>\n\
         <p class=\"lead\">Each chapter takes one published account of network software that was too \
         slow. It re-runs the old design here beside headend&#39;s own design, and states whether \
         the central claim of the account holds.</p>\n",
    );
    if let Some(sentence) = hero::sentence(chapters) {
        out += &format!("<p class=\"quote\">{}</p>\n", escape(&sentence));
    }
    out += &hero::chart(chapters).map_or(String::new(), |chart| figure(&chart));
    out += "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">account</th>\
         <th scope=\"col\">published as</th><th scope=\"col\">verdict</th></tr></thead>\n<tbody>\n";
    for (i, chapter) in chapters.iter().enumerate() {
        out += &format!(
            "<tr><td><a href=\"#chapter-{n}\">{n}. {}</a></td><td>{}</td><td>{}</td></tr>\n",
            escape(&chapter.title),
            escape(&chapter.source),
            badge(chapter.verdict.outcome),
            n = i + 1,
        );
    }
    out += "</tbody></table></div>\n<h3>How to read the pictures</h3>\n<dl>\n\
            <dt>dashed, hollow</dt><dd>as published. If only an end point is published, the line \
            to it is not a measurement.</dd>\n\
            <dt>full, filled</dt><dd>measured here. Thick lines are headend&#39;s own design; the \
            others are the old designs.</dd>\n\
            <dt>dotted</dt><dd>extrapolated from a run that was stopped, not measured.</dd>\n</dl>\n\
            <h3>The machine</h3>\n<ul>\n";
    for line in machine.lines() {
        out += &format!("<li>{}</li>\n", escape(&line));
    }
    out += "</ul>\n<p class=\"small\"><code>headend bench history</code> made this page; run it to see \
            your own machine&#39;s figures.</p>\n";
    out
}

/// The outcome with a symbol, so that colour is not the only cue.
fn badge(outcome: Outcome) -> String {
    let (class, sign) = mark(outcome);
    format!(
        "<span class=\"badge {class}\">{sign} {}</span>",
        outcome.words()
    )
}

fn mark(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Reproduced => ("reproduced", "\u{2714}"),
        Outcome::NotReproduced => ("not", "\u{2718}"),
        Outcome::NotTested => ("open", "?"),
        Outcome::NotJudged => ("open", "\u{2013}"),
    }
}

fn section(number: usize, chapter: &Chapter) -> String {
    let mut out = format!(
        "<section id=\"chapter-{number}\">\n<h2>{number}. {}</h2>\n<p class=\"source\">Published as: {}</p>\n",
        escape(&chapter.title),
        escape(&chapter.source)
    );
    for paragraph in &chapter.account {
        out += &format!("<p>{}</p>\n", escape(paragraph));
    }
    out += &verdict(&chapter.verdict);
    for chart in &chapter.charts {
        out += &figure(chart);
    }
    for table in &chapter.tables {
        out += &format!("<div class=\"scroll\">{}</div>\n", table.to_html());
    }
    if !chapter.method.is_empty() {
        out += "<h3>How it was measured and drawn</h3>\n<ul class=\"small\">\n";
        for sentence in &chapter.method {
            out += &format!("<li>{}</li>\n", escape(sentence));
        }
        out += "</ul>\n";
    }
    out + "</section>\n"
}

/// The outcome, then each claim with its symbol, then the remarks.
fn verdict(verdict: &Verdict) -> String {
    let (class, _) = mark(verdict.outcome);
    let mut claims = verdict.claims.iter().map(|claim| claim.because.as_str());
    let central = claims.next().unwrap_or_default();
    let mut out = format!(
        "<div class=\"verdict {class}\">{}<p class=\"claim\">{}</p></div>\n",
        badge(verdict.outcome),
        escape(central)
    );
    let rest: Vec<&str> = claims
        .chain(verdict.remarks.iter().map(String::as_str))
        .collect();
    if !rest.is_empty() {
        out += "<h3>Further measurements</h3>\n<ul class=\"small\">\n";
        for sentence in rest {
            out += &format!("<li>{}</li>\n", escape(sentence));
        }
        out += "</ul>\n";
    }
    out
}

/// The chart in two sizes; the style sheet shows one of them. Text scales with a chart, so a chart
/// for a desktop screen would be unreadable on a phone.
fn figure(chart: &Figure) -> String {
    format!(
        "<figure><div class=\"wide\">{}</div><div class=\"narrow\">{}</div></figure>\n",
        chart.to_inline_svg(WIDTH_DEFAULT),
        chart.to_inline_svg(WIDTH_NARROW)
    )
}
