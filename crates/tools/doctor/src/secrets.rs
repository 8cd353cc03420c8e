//! The secrets of a configuration and of the files that it names, and text without them.
//!
//! A log may repeat a secret in another form. [`Secrets::without`] finds it as it is, with escapes (`\"`, `\x41`,
//! `\u{e9}`, `%41`, and `+` for a space), as hexadecimal digits, as a list of numbers, and in Base64. The last three
//! only from four bytes on: shorter ones would match by chance everywhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Larger files are no secrets.
const FILE_MAX: u64 = 16 << 20;
/// Words in the names of keys whose values are secrets.
const WORDS: [&str; 4] = ["secret", "password", "token", "key"];
/// Secrets shorter than this are looked for as text only.
const CODED_MIN: usize = 4;
/// What stands in place of a secret.
const SHOWN: &str = "(secret)";

/// Reads a byte in some notation at a place of a text, and returns it with its end.
type ReadByte = fn(&[u8], usize) -> Option<(u8, usize)>;

/// Everything that a report must not repeat.
#[derive(Default)]
pub(crate) struct Secrets {
    /// By first byte, so that a place in a text is compared with few of them.
    by_first: Vec<Vec<Box<[u8]>>>,
}

impl Secrets {
    /// Those of the configuration at `path`. `None` if it cannot be read, so that they are unknown.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let text = settings::text_of(path).ok()?;
        let table = text.parse::<toml::Table>().ok()?;
        let mut found = BTreeSet::new();
        walk(&table, path, true, &mut found);
        Some(Self::from_list(found))
    }

    fn from_list(found: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut all = BTreeSet::new();
        for secret in found {
            if secret.len() >= CODED_MIN {
                all.extend(base64(&secret));
            }
            all.insert(secret);
        }
        let mut by_first = vec![Vec::new(); 256];
        for secret in all {
            if let Some(&first) = secret.first() {
                by_first[usize::from(first)].push(secret.into_boxed_slice());
            }
        }
        Self { by_first }
    }

    /// `text` with `(secret)` in place of each.
    pub(crate) fn without(&self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            match self.end_at(bytes, at) {
                Some(end) => {
                    out.extend_from_slice(SHOWN.as_bytes());
                    at = end;
                }
                None => {
                    out.push(bytes[at]);
                    at += 1;
                }
            }
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The end of the longest secret that starts here, in whatever form.
    fn end_at(&self, text: &[u8], at: usize) -> Option<usize> {
        let mut firsts = BTreeSet::new();
        for (unit, _) in units(text, at) {
            firsts.extend(unit.first().copied());
        }
        let coded = [hexadecimal(text, at), decimal(text, at)];
        firsts.extend(coded.iter().flatten().map(|(byte, _)| *byte));
        let of = |first: u8| self.by_first.get(usize::from(first)).into_iter().flatten();
        let secrets = firsts.into_iter().flat_map(of);
        let ends = secrets.filter_map(|secret| {
            let as_coded = |one: ReadByte| match secret.len() {
                CODED_MIN.. => coded_end(text, at, secret, one),
                _ => None,
            };
            let ends = [
                escaped_end(text, at, secret),
                as_coded(hexadecimal),
                as_coded(decimal),
            ];
            ends.into_iter().flatten().max()
        });
        ends.max()
    }
}

/// Adds the secrets of a table, and those of the files that it names.
fn walk(table: &toml::Table, file: &Path, follows: bool, found: &mut BTreeSet<Vec<u8>>) {
    for (key, value) in table {
        match value {
            toml::Value::String(text) => {
                let is_secret = WORDS.iter().any(|word| key.contains(word));
                if is_secret && !key.ends_with("file") {
                    found.insert(text.clone().into_bytes());
                }
                if follows {
                    walk_file(&settings::beside(file, text), is_secret, found);
                }
            }
            toml::Value::Table(table) => walk(table, file, follows, found),
            toml::Value::Array(list) => {
                for one in list {
                    // A list of secrets, or of tables.
                    let mut single = toml::Table::new();
                    single.insert(key.clone(), one.clone());
                    match one {
                        toml::Value::Table(table) => walk(table, file, follows, found),
                        _ => walk(&single, file, follows, found),
                    }
                }
            }
            _ => {}
        }
    }
}

/// The secrets of a file that a key names: its whole text if the key says that it is one, and those of a TOML file.
fn walk_file(path: &Path, is_secret: bool, found: &mut BTreeSet<Vec<u8>>) {
    let is_small = fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= FILE_MAX);
    let Some(text) = is_small.then(|| fs::read(path).ok()).flatten() else {
        return;
    };
    if is_secret {
        let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        found.extend(lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec));
        found.insert(text.trim_ascii().to_vec());
    }
    if let Ok(table) = String::from_utf8_lossy(&text).parse::<toml::Table>() {
        walk(&table, path, false, found);
    }
}

/// The end of `secret` at `at`, with or without escapes. Several readings are possible, so all are followed.
fn escaped_end(text: &[u8], at: usize, secret: &[u8]) -> Option<usize> {
    let mut open = vec![(at, 0)];
    let mut end = None;
    while let Some((place, matched)) = open.pop() {
        if matched == secret.len() {
            end = end.max(Some(place));
            continue;
        }
        for (unit, next) in units(text, place) {
            if secret[matched..].starts_with(&unit) {
                let step = (next, matched + unit.len());
                if !open.contains(&step) {
                    open.push(step);
                }
            }
        }
    }
    end
}

/// What may start at `at`: a byte, or an escape and the bytes that it stands for, each with its end.
fn units(text: &[u8], at: usize) -> Vec<(Vec<u8>, usize)> {
    let Some(&first) = text.get(at) else {
        return Vec::new();
    };
    let mut all = vec![(vec![first], at + 1)];
    match first {
        b'+' => all.push((vec![b' '], at + 1)),
        b'%' => all.extend(digits(text, at + 1, 2).map(|(code, end)| (vec![code as u8], end))),
        b'\\' => {
            // Text that was quoted twice has several.
            let run = text[at..].iter().take_while(|byte| **byte == b'\\').count();
            let after = at + run;
            all.extend((2..=run.min(8)).map(|taken| (vec![b'\\'], at + taken)));
            all.extend(escape(text, after));
        }
        _ => {}
    }
    all
}

/// The escape after its backslashes.
fn escape(text: &[u8], at: usize) -> Option<(Vec<u8>, usize)> {
    let kind = *text.get(at)?;
    let number = |count| digits(text, at + 1, count);
    let of = |code: u32, end| {
        let mut buffer = [0; 4];
        let text = char::from_u32(code)?.encode_utf8(&mut buffer);
        Some((text.as_bytes().to_vec(), end))
    };
    let plain = |byte| Some((vec![byte], at + 1));
    match kind {
        b'n' => plain(b'\n'),
        b't' => plain(b'\t'),
        b'r' => plain(b'\r'),
        b'x' => number(2).map(|(code, end)| (vec![code as u8], end)),
        b'u' if text.get(at + 1) == Some(&b'{') => {
            let count = (1..=6).find(|n| text.get(at + 2 + n) == Some(&b'}'))?;
            let (code, end) = digits(text, at + 2, count)?;
            of(code, end + 1)
        }
        b'u' => {
            let (high, end) = number(4)?;
            let low = match text.get(end..end + 2) {
                Some(b"\\u") => digits(text, end + 2, 4),
                _ => None,
            };
            match low {
                Some((low, end)) if (0xd800..0xdc00).contains(&high) => of(
                    0x1_0000 + ((high - 0xd800) << 10) + (low.checked_sub(0xdc00)? & 0x3ff),
                    end,
                ),
                _ => of(high, end),
            }
        }
        b'0'..=b'7' => {
            let octal = text
                .get(at..at + 3)
                .and_then(|part| std::str::from_utf8(part).ok());
            let code = octal.and_then(|part| u8::from_str_radix(part, 8).ok());
            match code {
                Some(code) => Some((vec![code], at + 3)),
                None if kind == b'0' => plain(0),
                None => None,
            }
        }
        other => plain(other),
    }
}

/// `count` hexadecimal digits, and their end.
fn digits(text: &[u8], at: usize, count: usize) -> Option<(u32, usize)> {
    let part = std::str::from_utf8(text.get(at..at + count)?).ok()?;
    let is_number = part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = is_number.then(|| u32::from_str_radix(part, 16).ok())??;
    Some((code, at + count))
}

/// A byte as two hexadecimal digits.
fn hexadecimal(text: &[u8], at: usize) -> Option<(u8, usize)> {
    let at = match text.get(at..at + 2) {
        Some(b"0x" | b"0X") => at + 2,
        _ => at,
    };
    digits(text, at, 2).map(|(code, end)| (code as u8, end))
}

/// A byte as a decimal number, the whole of it.
fn decimal(text: &[u8], at: usize) -> Option<(u8, usize)> {
    let count = text[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let is_start = at == 0 || !text[at - 1].is_ascii_digit();
    let part = std::str::from_utf8(&text[at..at + count.min(3)]).ok()?;
    let byte = part.parse().ok().filter(|_| is_start && count <= 3)?;
    Some((byte, at + count))
}

/// The end of `secret` as bytes that `one` reads, with or without separators.
fn coded_end(text: &[u8], at: usize, secret: &[u8], one: ReadByte) -> Option<usize> {
    let mut at = at;
    for (i, expected) in secret.iter().enumerate() {
        if i > 0 {
            let is_between = |byte: &&u8| matches!(byte, b' ' | b',' | b':' | b'-' | b'\n');
            at += text[at..].iter().take(2).take_while(is_between).count();
        }
        match one(text, at) {
            Some((byte, end)) if byte == *expected => at = end,
            _ => return None,
        }
    }
    Some(at)
}

/// The digits of Base64 that depend on nothing but `secret`, at each offset in a longer text, with both alphabets.
fn base64(secret: &[u8]) -> Vec<Vec<u8>> {
    const PLAIN: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut all = Vec::new();
    for offset in 0..3 {
        let mut bits = vec![None; offset * 8];
        for byte in secret {
            bits.extend((0..8).rev().map(|bit| Some(byte >> bit & 1)));
        }
        let group = |group: &[Option<u8>]| {
            let bits = group
                .iter()
                .try_fold(0, |sum, bit| Some(sum << 1 | (*bit)?));
            bits.map(|digit: u8| PLAIN[usize::from(digit)])
        };
        let known: Vec<u8> = bits.chunks_exact(6).filter_map(group).collect();
        let url = known.iter().map(|digit| match digit {
            b'+' => b'-',
            b'/' => b'_',
            digit => *digit,
        });
        let url: Vec<u8> = url.collect();
        if known.len() >= CODED_MIN {
            all.extend([known, url]);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random.
    fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
        let mut number = seed;
        move |below| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) as usize % below
        }
    }

    /// The forms in which a log may have a secret, each by an encoder of its own.
    fn forms(secret: &str) -> Vec<String> {
        let bytes = secret.as_bytes();
        let join = |sep: &str, one: &dyn Fn(u8) -> String| {
            let all: Vec<String> = bytes.iter().map(|byte| one(*byte)).collect();
            all.join(sep)
        };
        let percent = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        };
        let json = serde_json::to_string(secret).unwrap();
        let twice = serde_json::to_string(&json).unwrap();
        let ascii = json.chars().map(|c| match c {
            ' '..='~' => c.to_string(),
            c => {
                let mut units = [0; 2];
                let units = c.encode_utf16(&mut units).iter();
                units.map(|unit| format!("\\u{unit:04x}")).collect()
            }
        });
        let inner = |text: &str| text[1..text.len() - 1].to_owned();
        let mut all = vec![
            secret.to_owned(),
            inner(&json),
            twice[3..twice.len() - 3].to_owned(),
            inner(&ascii.collect::<String>()),
            inner(&format!("{secret:?}")),
            bytes.escape_ascii().to_string(),
            secret.escape_unicode().to_string(),
            join("", &percent),
            join("", &percent).replace("%20", "+"),
            join("", &|byte| format!("%{byte:02x}")),
        ];
        if bytes.len() >= CODED_MIN {
            all.extend([
                join("", &|byte| format!("{byte:02x}")),
                join("", &|byte| format!("{byte:02X}")),
                join(" ", &|byte| format!("{byte:02x}")),
                join(":", &|byte| format!("{byte:02X}")),
                join(", ", &|byte| format!("0x{byte:02x}")),
                join(", ", &|byte| byte.to_string()),
            ]);
        }
        all
    }

    #[test]
    fn no_form_of_a_secret_is_left_in_a_text() {
        let alphabet: Vec<char> = "abzAZ059 \"'\\%+&=/:-_,;{}$#\n\té€😀".chars().collect();
        for seed in 0..400 {
            let mut next = numbers(seed);
            let mut random = |least: usize, most: usize| -> String {
                let count = least + next(most - least + 1);
                (0..count).map(|_| alphabet[next(alphabet.len())]).collect()
            };
            let secrets: Vec<String> = (0..3).map(|_| random(3, 12)).collect();
            let list = secrets.iter().map(|one| one.clone().into_bytes());
            let hidden = Secrets::from_list(list);
            for secret in &secrets {
                for form in forms(secret) {
                    let line = format!("<{}|{form}|{}>", random(0, 4), random(0, 4));
                    let shown = hidden.without(&line);
                    assert!(
                        !shown.contains(&form),
                        "seed {seed}: {form:?} is in {shown:?}"
                    );
                    assert!(shown.contains(SHOWN), "seed {seed}: {shown:?}");
                }
            }
        }
    }

    #[test]
    fn a_text_without_a_secret_is_as_before() {
        let hidden = Secrets::from_list([b"swordfish".to_vec(), b"two words".to_vec()]);
        for text in [
            "",
            "a plain line \\x41 %41 \\u{41} \\",
            "%",
            "\\u{",
            "\\ud83d",
            "sword fish, 0x73 0x77, 115, 119, c3dvcmQ=",
            "é€😀",
        ] {
            assert_eq!(hidden.without(text), text);
        }
        let line =
            "user=ann&password=two+words 7377-6f72-6466-6973-68 c3dvcmRmaXNo AHN3b3JkZmlzaAA=";
        let shown = "user=ann&password=(secret) (secret) (secret) AH(secret)AA=";
        assert_eq!(hidden.without(line), shown);
    }

    #[test]
    fn secrets_of_the_files_that_a_configuration_names_are_known() {
        let directory = std::env::temp_dir().join(format!("doctor-secrets-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        file(
            "users.toml",
            "[[user]]\nname = \"ann\"\npassword = \"the cat\"\n",
        );
        file("peer.secret", "first line\nsecond line\n");
        file("filters.txt", "filter closed\n");
        let text = "[users]\nfile = \"users.toml\"\n[filter]\nfile = \"filters.txt\"\n[l2tp]\nsecret = \"in file\"\n\
             [[bgp.neighbor]]\nsecret_file = \"peer.secret\"\n[web]\ntokens = [\"t-one\", \"t-two\"]\nname = \"shown\"\n";
        let config = file("h.toml", text);
        let secrets = Secrets::of(&config).unwrap();
        let line = "ann the cat, first line, second line, closed, in file, t-one, t-two, shown";
        let shown = "ann (secret), (secret), (secret), closed, (secret), (secret), (secret), shown";
        assert_eq!(secrets.without(line), shown);
        file("h.toml", "[l2tp\n");
        assert!(Secrets::of(&config).is_none(), "its secrets are unknown");
        fs::remove_dir_all(directory).unwrap();
    }
}
