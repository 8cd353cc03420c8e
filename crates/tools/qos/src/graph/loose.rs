//! Reads the output of `tc -j`, which is not always valid JSON. For example, iproute2 6.1 writes `"options":{default 1
//! }` for hfsc, `{handle 0x7 classid 1:30 }` for fw, and plain text after a police action. Values without a key are
//! kept as members of [`Item::Object`] with an empty key, so nothing is lost.

/// Maximum nesting depth that is parsed; deeper values are kept as text.
const DEPTH_MAX: u32 = 32;

/// A value. Numbers, `true` and the like keep their original spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Text(String),
    List(Vec<Item>),
    Object(Vec<(String, Item)>),
}

impl Item {
    /// The first member named `key`.
    pub(crate) fn get(&self, key: &str) -> Option<&Item> {
        match self {
            Self::Object(members) => members.iter().find(|(name, _)| name == key).map(|it| &it.1),
            Self::Text(_) | Self::List(_) => None,
        }
    }

    /// The first member named `key`, if it is text.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Self::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// Parses a value at the start of `text`; returns the value and the remaining text.
pub(crate) fn read(text: &str) -> (Item, &str) {
    let mut reader = Reader::new(text);
    let item = reader.value(0);
    (item, reader.rest)
}

/// Whether `text` ends before the lists and objects that it opens are closed.
pub(crate) fn is_cut_short(text: &str) -> bool {
    let mut reader = Reader::new(text.trim_start());
    while reader.rest.starts_with(['[', '{']) {
        reader.value(0);
        reader.rest = reader.rest.trim_start();
    }
    reader.is_cut
}

struct Reader<'t> {
    rest: &'t str,
    /// The text ended inside a value.
    is_cut: bool,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            rest: text,
            is_cut: false,
        }
    }

    fn value(&mut self, depth: u32) -> Item {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next() {
            Some('{') if depth < DEPTH_MAX => {
                self.skip();
                self.object(depth)
            }
            Some('[') if depth < DEPTH_MAX => {
                self.skip();
                self.list(depth)
            }
            Some('"') => Item::Text(self.string()),
            _ => Item::Text(self.until(&[',', '}', ']']).trim().to_owned()),
        }
    }

    fn list(&mut self, depth: u32) -> Item {
        let mut items = Vec::new();
        loop {
            self.rest = self.rest.trim_start_matches([' ', ',', '\n', '\t', '\r']);
            match self.rest.chars().next() {
                None => {
                    self.is_cut = true;
                    return Item::List(items);
                }
                Some(']') => {
                    self.skip();
                    return Item::List(items);
                }
                Some('}') => self.skip(),
                Some(_) => items.push(self.value(depth + 1)),
            }
        }
    }

    fn object(&mut self, depth: u32) -> Item {
        let mut members = Vec::new();
        let loose = |text: &str, members: &mut Vec<(String, Item)>| {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if !words.is_empty() {
                members.push((String::new(), Item::Text(words)));
            }
        };
        loop {
            self.rest = self.rest.trim_start_matches([' ', ',', '\n', '\t', '\r']);
            match self.rest.chars().next() {
                None => {
                    self.is_cut = true;
                    return Item::Object(members);
                }
                Some('}') => {
                    self.skip();
                    return Item::Object(members);
                }
                Some('"') => {
                    let key = self.string();
                    let after = self.rest.trim_start();
                    if let Some(after) = after.strip_prefix(':') {
                        self.rest = after;
                        let value = self.value(depth + 1);
                        members.push((key, value));
                    } else {
                        loose(&key, &mut members);
                    }
                }
                Some('{' | '[') => {
                    let value = self.value(depth + 1);
                    if let Item::Text(text) = value {
                        loose(&text, &mut members);
                    } else {
                        members.push((String::new(), value));
                    }
                }
                Some(']') => self.skip(),
                Some(_) => {
                    let text = self.until(&['"', '{', '}', '[', ']']);
                    loose(text, &mut members);
                }
            }
        }
    }

    /// Parses a string, starting at its opening quotation mark. An unterminated string extends to the end of the text.
    fn string(&mut self) -> String {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return text;
                }
                '\\' => match chars.next() {
                    Some((_, 'n' | 'r' | 't')) => text.push(' '),
                    Some((_, other)) => text.push(other),
                    None => {}
                },
                other => text.push(other),
            }
        }
        self.rest = "";
        text
    }

    /// The text before the first of `ends`.
    fn until(&mut self, ends: &[char]) -> &'t str {
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text
    }

    fn skip(&mut self) {
        let first = self.rest.chars().next().map_or(0, char::len_utf8);
        self.rest = &self.rest[first..];
    }
}
