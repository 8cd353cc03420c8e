//! GoBGP's files as a list of settings: a path of keys, a value, and its line. TOML is read by the `toml` crate, YAML by
//! the reader here, which knows block mappings and lists, flow lists of scalars, quotes and comments.

use toml::de::{DeTable, DeValue};

/// A part of a path: a key, or the number of a list's item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Key(String),
    Item(usize),
}

/// A value with its path.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub path: Vec<Part>,
    pub value: Scalar,
    pub line: usize,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Text(String),
    Number(i64),
    Flag(bool),
    Texts(Vec<String>),
    /// Something else.
    Other,
}

/// Where a text is not TOML or YAML, and why.
pub(super) type Fault = (usize, String);

/// How deep values may be.
const DEPTH_MAX: usize = 24;

/// Settings that one file may have.
const SETTINGS_MAX: usize = 1 << 20;

/// Reads TOML.
pub(super) fn toml(text: &str) -> Result<Vec<Setting>, Fault> {
    let line_of = |at: usize| {
        text.as_bytes()
            .iter()
            .take(at)
            .filter(|byte| **byte == b'\n')
            .count()
            + 1
    };
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        // The message could repeat a value.
        (line, "not TOML".to_owned())
    })?;
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.match_indices('\n').map(|(at, _)| at + 1))
        .collect();
    let mut all = Vec::new();
    walk(table.get_ref(), &mut Vec::new(), &starts, &mut all);
    Ok(all)
}

fn walk(table: &DeTable<'_>, path: &mut Vec<Part>, starts: &[usize], all: &mut Vec<Setting>) {
    for (key, value) in table {
        path.push(Part::Key(key.get_ref().to_string()));
        let line = starts.partition_point(|start| *start <= value.span().start);
        value_of(value.get_ref(), line, path, starts, all);
        path.pop();
    }
}

fn value_of(
    value: &DeValue<'_>,
    line: usize,
    path: &mut Vec<Part>,
    starts: &[usize],
    all: &mut Vec<Setting>,
) {
    if path.len() > DEPTH_MAX || all.len() >= SETTINGS_MAX {
        return;
    }
    let scalar = match value {
        DeValue::Table(table) => return walk(table, path, starts, all),
        DeValue::Array(items)
            if items
                .iter()
                .any(|item| matches!(item.get_ref(), DeValue::Table(_))) =>
        {
            for (number, item) in items.iter().enumerate() {
                path.push(Part::Item(number));
                let line = starts.partition_point(|start| *start <= item.span().start);
                value_of(item.get_ref(), line, path, starts, all);
                path.pop();
            }
            return;
        }
        DeValue::Array(items) => {
            let texts: Option<Vec<String>> = items
                .iter()
                .map(|item| match item.get_ref() {
                    DeValue::String(text) => Some(text.to_string()),
                    DeValue::Integer(number) => Some(number.as_str().to_owned()),
                    _ => None,
                })
                .collect();
            texts.map_or(Scalar::Other, Scalar::Texts)
        }
        DeValue::String(text) => Scalar::Text(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(&number.as_str().replace('_', ""), number.radix())
                .map_or(Scalar::Other, Scalar::Number)
        }
        DeValue::Float(number) => number
            .as_str()
            .parse::<f64>()
            .ok()
            .filter(|number| number.fract() == 0.0 && number.abs() < 1e15)
            .map_or(Scalar::Other, |number| Scalar::Number(number as i64)),
        DeValue::Boolean(flag) => Scalar::Flag(*flag),
        DeValue::Datetime(_) => Scalar::Other,
    };
    all.push(Setting {
        path: path.clone(),
        value: scalar,
        line,
    });
}

/// An open block of YAML: its indentation, the length of its path, and the next item of its list.
struct Open {
    indent: usize,
    depth: usize,
    item: Option<usize>,
}

/// Reads YAML.
// long: one pass over the lines, whose state is the path and the open blocks
pub(super) fn yaml(text: &str) -> Result<Vec<Setting>, Fault> {
    let mut all = Vec::new();
    let mut path: Vec<Part> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = uncommented(line);
        let mut rest = line.trim_start();
        if rest.is_empty() || rest == "---" || rest == "..." {
            continue;
        }
        if line[..line.len() - rest.len()].contains('\t') {
            return Err((number, "YAML is indented with spaces".into()));
        }
        let mut indent = line.len() - rest.len();
        loop {
            let is_item = rest == "-" || rest.starts_with("- ");
            while open.last().is_some_and(|last| {
                last.indent > indent || last.indent == indent && last.item.is_some() && !is_item
            }) {
                open.pop();
            }
            let fits = open
                .last()
                .is_some_and(|last| last.indent == indent && last.item.is_some() == is_item);
            if !fits {
                if open.len() > DEPTH_MAX {
                    return Err((number, "values are more than 24 deep".into()));
                }
                let depth = if open.is_empty() { 0 } else { path.len() };
                open.push(Open {
                    indent,
                    depth,
                    item: is_item.then_some(0),
                });
            }
            let last = open.last_mut().expect("a block was opened");
            path.truncate(last.depth);
            if !is_item {
                break;
            }
            let item = last.item.get_or_insert(0);
            path.push(Part::Item(*item));
            *item += 1;
            let inner = rest[1..].trim_start();
            indent += rest.len() - inner.len();
            rest = inner;
            if rest.is_empty() || key_of(rest).is_none() && !rest.starts_with("- ") {
                break;
            }
        }
        if rest.is_empty() {
            continue;
        }
        let value = match key_of(rest) {
            Some((key, value)) => {
                path.push(Part::Key(key));
                value
            }
            None if matches!(path.last(), Some(Part::Item(_))) => rest,
            None => return Err((number, "not of the form KEY: VALUE".into())),
        };
        if !value.is_empty() {
            if all.len() >= SETTINGS_MAX {
                return Err((number, "more than 1048576 values".into()));
            }
            all.push(Setting {
                path: path.clone(),
                value: scalar(value),
                line: number,
            });
        }
    }
    Ok(joined(all))
}

/// Lists of scalars that are written one item a line become one value.
fn joined(all: Vec<Setting>) -> Vec<Setting> {
    let mut out: Vec<Setting> = Vec::new();
    for setting in all {
        let Some((Part::Item(number), list)) = setting.path.split_last() else {
            out.push(setting);
            continue;
        };
        let text = match setting.value {
            Scalar::Text(text) => text,
            Scalar::Number(number) => number.to_string(),
            _ => String::new(),
        };
        match out.last_mut() {
            Some(Setting {
                path,
                value: Scalar::Texts(texts),
                ..
            }) if *number > 0 && path == list => texts.push(text),
            _ => out.push(Setting {
                path: list.to_vec(),
                value: Scalar::Texts(vec![text]),
                line: setting.line,
            }),
        }
    }
    out
}

/// The key of a line and what follows it.
fn key_of(text: &str) -> Option<(String, &str)> {
    let (key, value) = match text.strip_prefix('"') {
        Some(rest) => {
            let (key, rest) = rest.split_once('"')?;
            (key, rest.trim_start().strip_prefix(':')?)
        }
        None => {
            let at = text.match_indices(':').map(|(at, _)| at).find(|at| {
                let after = text.as_bytes().get(at + 1);
                after.is_none_or(|byte| *byte == b' ')
            })?;
            (&text[..at], &text[at + 1..])
        }
    };
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    key.chars()
        .all(plain)
        .then(|| (key.to_owned(), value.trim()))
}

fn scalar(text: &str) -> Scalar {
    if let Some(inside) = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
    {
        let items = inside
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty());
        return Scalar::Texts(items.map(unquoted).collect());
    }
    match text {
        "true" => Scalar::Flag(true),
        "false" => Scalar::Flag(false),
        text if text.starts_with(['"', '\'']) => Scalar::Text(unquoted(text)),
        text if text.starts_with(['{', '&', '*', '|', '>', '!']) => Scalar::Other,
        text => text
            .parse()
            .map_or_else(|_| Scalar::Text(text.to_owned()), Scalar::Number),
    }
}

fn unquoted(text: &str) -> String {
    let inside = ['"', '\'']
        .iter()
        .find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    inside.unwrap_or(text).to_owned()
}

/// The line without a comment, which starts at the start or after a space.
fn uncommented(line: &str) -> &str {
    let mut quote = None;
    let mut last = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') if last.is_whitespace() => return line[..at].trim_end(),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
        last = c;
    }
    line.trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(all: &[Setting]) -> Vec<String> {
        let part = |part: &Part| match part {
            Part::Key(key) => key.clone(),
            Part::Item(number) => number.to_string(),
        };
        let line = |one: &Setting| {
            format!(
                "{} {}: {:?}",
                one.line,
                one.path.iter().map(part).collect::<Vec<_>>().join("."),
                one.value
            )
        };
        all.iter().map(line).collect()
    }

    #[test]
    fn yaml_and_toml_give_the_same_settings() {
        let yaml = yaml("global:\n  config:\n    as: 7 # ours\nneighbors:\n  - config:\n      peer-as: 8\n      auth-password: \"a # b\"\n  - config: \n      peer-as: 9\nlist:\n- a\n- 'b'\nflow: [x, \"y\"]\n").unwrap();
        let toml = toml("flow = [\"x\", \"y\"]\nlist = [\"a\", \"b\"]\n[global.config]\nas = 7\n[[neighbors]]\n[neighbors.config]\npeer-as = 8\nauth-password = \"a # b\"\n[[neighbors]]\n[neighbors.config]\npeer-as = 9\n").unwrap();
        let plain = |all: &[Setting]| {
            let mut all: Vec<String> = shown(all)
                .iter()
                .map(|line| line.split_once(' ').unwrap().1.to_owned())
                .collect();
            all.sort();
            all
        };
        assert_eq!(plain(&yaml), plain(&toml));
        assert_eq!(
            shown(&yaml)[2],
            "7 neighbors.0.config.auth-password: Text(\"a # b\")"
        );
    }

    #[test]
    fn a_fault_has_its_line() {
        assert_eq!(yaml("a: 1\n\tb: 2\n").unwrap_err().0, 2);
        assert_eq!(toml("a = 1\nb = \n").unwrap_err().0, 2);
    }
}
