//! BIRD's statements: words up to a semicolon or a block in braces. Total on any text.

use std::sync::Arc;

/// A statement, and the block behind it.
#[derive(Clone, Debug, Default)]
pub(super) struct Statement {
    pub words: Vec<String>,
    /// The line of the first word, or of the block.
    pub line: usize,
    /// The name of its file.
    pub file: Option<Arc<str>>,
    pub block: Option<Vec<Statement>>,
}

impl Statement {
    pub(super) fn words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }
}

/// Names the file of the statements and of those inside.
pub(super) fn stamp(statements: &mut [Statement], file: &Arc<str>) {
    for statement in statements {
        statement.file = Some(Arc::clone(file));
        stamp(statement.block.as_deref_mut().unwrap_or_default(), file);
    }
}

/// What could not be read.
pub(super) type Fault = (usize, &'static str);

/// How deep blocks may be.
const DEPTH_MAX: usize = 16;

#[derive(Clone, Debug)]
struct Word {
    text: String,
    line: usize,
    /// In quotes: it is never punctuation.
    is_text: bool,
}

/// Reads a whole file.
pub(super) fn statements(text: &str) -> (Vec<Statement>, Vec<Fault>) {
    let (words, mut faults) = words(text);
    let mut rest = words.as_slice();
    let mut all = Vec::new();
    while !rest.is_empty() {
        all.extend(block(&mut rest, 0, false, &mut faults));
        // A brace that closes nothing.
        if let Some((brace, after)) = rest.split_first() {
            faults.push((brace.line, "a brace closes nothing"));
            rest = after;
        }
    }
    (all, faults)
}

/// Statements up to a closing brace, which stays; or a list of words such as `debug { states, events }`.
fn block(
    rest: &mut &[Word],
    depth: usize,
    is_list: bool,
    faults: &mut Vec<Fault>,
) -> Vec<Statement> {
    let mut all = Vec::new();
    let mut now = Statement::default();
    let mut brackets = 0_usize;
    while let Some((word, after)) = rest.split_first() {
        let mark = if word.is_text { "" } else { word.text.as_str() };
        if now.line == 0 {
            now.line = word.line;
        }
        match mark {
            "}" if brackets == 0 => break,
            ";" if brackets == 0 => {
                *rest = after;
                if !now.words.is_empty() {
                    all.push(std::mem::take(&mut now));
                }
                now.line = 0;
                continue;
            }
            "{" if brackets == 0 => {
                *rest = after;
                if depth == DEPTH_MAX {
                    faults.push((word.line, "blocks are more than 16 deep"));
                    continue;
                }
                let before = now.words.last().map(String::as_str);
                let is_list = matches!(
                    before,
                    Some("debug" | "mrtdump" | "syslog" | "stderr" | "log")
                );
                now.block = Some(block(rest, depth + 1, is_list, faults));
                match rest.split_first() {
                    Some((_, after)) => *rest = after,
                    None => faults.push((word.line, "the block is not closed")),
                }
                all.push(std::mem::take(&mut now));
                now.line = 0;
                continue;
            }
            "[" | "(" => brackets += 1,
            "]" | ")" => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        now.words.push(word.text.clone());
        *rest = after;
    }
    if !now.words.is_empty() {
        if !is_list {
            faults.push((now.line, "the statement has no semicolon at its end"));
        }
        all.push(now);
    }
    all
}

fn words(text: &str) -> (Vec<Word>, Vec<Fault>) {
    let (mut words, mut faults) = (Vec::new(), Vec::new());
    let mut line = 1;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let start = line;
        let mut push = |text: String, is_text: bool| {
            words.push(Word {
                text,
                line: start,
                is_text,
            })
        };
        match c {
            '\n' => line += 1,
            c if c.is_whitespace() => {}
            '#' => while rest.next_if(|c| *c != '\n').is_some() {},
            '/' if rest.peek() == Some(&'*') => {
                let mut last = ' ';
                let mut closed = false;
                rest.next();
                for c in rest.by_ref() {
                    line += usize::from(c == '\n');
                    closed = last == '*' && c == '/';
                    if closed {
                        break;
                    }
                    last = c;
                }
                if !closed {
                    faults.push((start, "a comment is not closed"));
                }
            }
            '"' => {
                let mut text = String::new();
                while let Some(c) = rest.next_if(|c| !matches!(c, '"' | '\n')) {
                    text.push(c);
                }
                if rest.next_if_eq(&'"').is_none() {
                    faults.push((start, "a quote is not closed"));
                }
                push(text, true);
            }
            '{' | '}' | '(' | ')' | '[' | ']' | ';' | ',' | '=' | '~' | '<' | '>' | '!' | '&'
            | '|' | '+' => {
                let mut text = c.to_string();
                if matches!(c, '!' | '<' | '>' | '&' | '|')
                    && let Some(next) = rest.next_if(|next| matches!(next, '=' | '~' | '&' | '|'))
                {
                    text.push(next);
                }
                push(text, false);
            }
            c => {
                let mut text = c.to_string();
                while let Some(c) = rest.next_if(|c| c.is_alphanumeric() || "_.:/-*?'".contains(*c))
                {
                    text.push(c);
                }
                push(text, false);
            }
        }
    }
    (words, faults)
}
