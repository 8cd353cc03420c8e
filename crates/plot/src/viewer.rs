//! What all pages share: uPlot as it is published, our axes and hands on top of it, and one look.
//!
//! A page that draws with it puts [`style`] into its head, and [`UPLOT`], `const LOOKS = ` [`looks`] and [`script`] into one
//! script. The script's class `View` is a chart; the page's own class says what is to be seen. Start with
//! `page/view.js`, then `page/chart.js` for charts of samples.
//!
//! The page stays one file: nothing in it asks for another.

use crate::svg::{LOOKS, PALETTE, STYLE_SHEET, dash, shape};
use std::fmt::Write as _;

/// The library, as it is published; it defines `uPlot`.
pub const UPLOT: &str = include_str!("../vendor/uplot/uPlot.iife.min.js");

const UPLOT_STYLE: &str = include_str!("../vendor/uplot/uPlot.min.css");
const STYLE: &str = include_str!("page/page.css");
/// The viewer's parts, in an order in which each knows those before it.
const SCRIPT: [&str; 2] = [
    include_str!("page/numbers.js"),
    include_str!("page/view.js"),
];

/// Colours beside those of series, when light and when dark; as in the style sheet.
const INKS: [&str; 2] = [
    r##"{ground:"#fff",text:"#1b1d20",muted:"#55595f",grid:"#d8dbdf",panel:"#f4f5f7"}"##,
    r##"{ground:"#16191d",text:"#e8e8e8",muted:"#b4b9c0",grid:"#343a41",panel:"#20242a"}"##,
];

/// The style sheet of every page, light and dark, on screen and on paper.
#[must_use]
pub fn style() -> String {
    [UPLOT_STYLE, "\n", STYLE, STYLE_SHEET].concat()
}

/// Colours, marks and dashes of series as a JavaScript object.
#[must_use]
pub fn looks() -> String {
    let mut text = String::from("{colours:[");
    for (light, dark) in PALETTE {
        let _ = write!(text, "[\"{light}\",\"{dark}\"],");
    }
    let _ = write!(text, "],\ninks:[{},{}],\nshapes:[", INKS[0], INKS[1]);
    for colour in 0..PALETTE.len() {
        let _ = write!(text, "\"{}\",", shape(colour, 0.0, 0.0));
    }
    text.push_str("],\ndashes:[");
    for look in 0..LOOKS {
        let _ = write!(text, "[{}],", dash(look).replace(' ', ","));
    }
    text.push_str("]}");
    text
}

/// The viewer's script and a page's own parts after it, without comments, and without spaces and ends of lines that part
/// nothing.
///
/// Each of its statements ends with a semicolon, and no template has another one in it.
#[must_use]
pub fn script(own: &[&str]) -> String {
    let mut page = String::from("{\n");
    let parts = SCRIPT.iter().chain(own);
    let lines = parts.flat_map(|part| part.lines()).map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    let mut before = lines.next().unwrap_or_default();
    write_squeezed(&mut page, before);
    for line in lines {
        let (end, start) = (before.chars().next_back(), line.chars().next());
        if !end.is_some_and(separates) && !start.is_some_and(separates) {
            page.push('\n');
        }
        write_squeezed(&mut page, line);
        before = line;
    }
    page.push_str("}\n");
    page
}

/// Whether a character is an end of its neighbours.
fn separates(c: char) -> bool {
    "{}()[],;:=<>?&|!*+-%/".contains(c)
}

/// One line without the spaces beside its punctuation, but for those in quotes.
fn write_squeezed(page: &mut String, line: &str) {
    let sign = |c: char| c == '+' || c == '-';
    let (mut quote, mut before) = (None, '\n');
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match quote {
            Some(open) if c == open && before != '\\' => quote = None,
            None if "\"'`".contains(c) => quote = Some(c),
            None if c == ' ' => {
                let next = rest.peek().copied().unwrap_or(' ');
                if (separates(before) || separates(next)) && !(sign(before) && sign(next)) {
                    continue;
                }
            }
            None if c == '}' && page.ends_with(';') => {
                page.pop();
            }
            _ => {}
        }
        page.push(c);
        before = c;
        // The shorter word means the same to a script that runs.
        if quote.is_none() && page.ends_with("const ") {
            page.truncate(page.len() - "const ".len());
            page.push_str("let ");
        }
    }
}

/// A string of JavaScript that is also safe in a page.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            ' '..='~' if !"\"\\<>&'".contains(character) => quoted.push(character),
            character => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(quoted, "\\u{unit:04x}");
                }
            }
        }
    }
    quoted.push('"');
    quoted
}
