//! A file of streams, in TOML:
//!
//! ```toml
//! interval = 0.01        # for those that do not say
//!
//! [[stream]]
//! host = "192.0.2.1"
//! tos = "ef"             # or a number
//! size = 500
//!
//! [[stream]]
//! host = "www.example.net"
//! name = "web"
//! udp = 7007
//! count = 100
//! ```

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use base::Duration;
use serde::Deserialize;

use super::spec::{self, Spec};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tos: Option<Word>,
    size: Option<u16>,
    interval: Option<Word>,
    count: Option<u64>,
    udp: Option<u16>,
    #[serde(default)]
    stream: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    host: String,
    name: Option<String>,
    tos: Option<Word>,
    size: Option<u16>,
    interval: Option<Word>,
    count: Option<u64>,
    udp: Option<u16>,
}

/// A number, or a text that is read as on the command line.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Word {
    Whole(u64),
    Fraction(f64),
    Text(String),
}

impl Word {
    fn text(&self) -> String {
        match self {
            Word::Whole(number) => number.to_string(),
            Word::Fraction(number) => number.to_string(),
            Word::Text(text) => text.clone(),
        }
    }

    fn tos(word: Option<&Word>) -> Result<Option<u8>> {
        word.map(|word| spec::tos(&word.text())).transpose()
    }

    fn seconds(word: Option<&Word>) -> Result<Option<Duration>> {
        word.map(|word| spec::seconds(&word.text())).transpose()
    }
}

/// Reads the file's streams.
///
/// # Errors
/// The file, and the line or the stream that is wrong.
pub(super) fn read(path: &Path) -> Result<Vec<Spec>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> Result<Vec<Spec>> {
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            let before = text.get(..span.start).unwrap_or(text);
            before.matches('\n').count() + 1
        });
        anyhow!("line {line}: {}", error.message().trim())
    })?;
    if file.stream.is_empty() {
        bail!("no [[stream]] in it");
    }
    let tos = Word::tos(file.tos.as_ref())?;
    let interval = Word::seconds(file.interval.as_ref())?;
    let spec = |entry: &Entry| -> Result<Spec> {
        if entry.host.is_empty() {
            bail!("its host is empty");
        }
        Ok(Spec {
            host: entry.host.clone(),
            name: entry.name.clone(),
            tos: Word::tos(entry.tos.as_ref())?.or(tos),
            size: entry.size.or(file.size),
            interval: Word::seconds(entry.interval.as_ref())?.or(interval),
            count: entry.count.or(file.count),
            udp: entry.udp.or(file.udp).filter(|port| *port != 0),
        })
    };
    let numbered = file.stream.iter().enumerate();
    numbered
        .map(|(number, entry)| {
            spec(entry).with_context(|| format!("stream {} ({})", number + 1, entry.host))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_take_what_they_do_not_say_from_the_top() {
        let text = "interval = 0.01\ntos = \"ef\"\n\
                    [[stream]]\nhost = \"192.0.2.1\"\nsize = 500\n\
                    [[stream]]\nhost = \"::1\"\nname = \"six\"\ntos = 0x20\ninterval = 2\nudp = 9\n";
        let specs = parse(text).unwrap();
        assert_eq!(specs[0].tos, Some(0xb8));
        assert_eq!(specs[0].interval, Some(Duration::from_millis(10)));
        assert_eq!((specs[0].size, specs[0].udp), (Some(500), None));
        assert_eq!(specs[1].name.as_deref(), Some("six"));
        assert_eq!((specs[1].tos, specs[1].udp), (Some(32), Some(9)));
        assert_eq!(specs[1].interval, Some(Duration::from_secs(2)));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, why) in [
            ("", "no [[stream]]"),
            ("x = 1\n", "line 1: "),
            (
                "[[stream]]\nhost = \"a\"\nsise = 3\n",
                "line 3: unknown field `sise`",
            ),
            (
                "[[stream]]\nhost = \"a\"\ntos = 300\n",
                "stream 1 (a): TOS 300 is impossible",
            ),
            ("[[stream]]\nhost = \"\"\n", "host is empty"),
            ("[[stream]]\nsize = 3\n", "missing field `host`"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
