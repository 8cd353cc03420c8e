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

use anyhow::Result;
use base::Duration;
use settings::{Faults, Notes, Section};
use toml::de::DeTable;

use super::spec::{self, Spec};

/// Reads the streams of a file.
///
/// # Errors
/// The faults in the file.
pub(super) fn read(path: &Path) -> Result<Vec<Spec>> {
    let text = settings::text_of(path)?;
    Ok(parse(&text).map_err(|faults| faults.of(path))?)
}

fn parse(text: &str) -> Result<Vec<Spec>, Faults> {
    let notes = Notes::new(text);
    let specs = settings::document(&notes).map(|root| file(&root, &notes));
    notes.finish(specs).map(|(specs, _)| specs)
}

fn file(root: &DeTable<'_>, notes: &Notes<'_>) -> Vec<Spec> {
    let mut top = Section::root(root, notes);
    let all = common(&mut top);
    top.known("stream");
    top.finish();
    let mut specs = Vec::new();
    for mut section in Section::each(root, "stream", "stream", notes) {
        section.require("host", "write host = \"192.0.2.1\"");
        let host = section.sized("host", 1..=HOST_BYTES_MAX);
        let name = section.string("name");
        let own = common(&mut section);
        section.finish();
        specs.extend(host.map(|host| Spec {
            host: host.value.to_owned(),
            name: name.map(|name| name.value),
            tos: own.tos.or(all.tos),
            size: own.size.or(all.size),
            interval: own.interval.or(all.interval),
            count: own.count.or(all.count),
            udp: own.udp.or(all.udp).filter(|port| *port != 0),
        }));
    }
    if !root.contains_key("stream") {
        notes.whole(
            "stream",
            "is missing; write [[stream]] with host = \"192.0.2.1\"",
        );
    }
    specs
}

/// Bytes of the longest name of a host (RFC 1035, section 2.3.4), with room for an interface behind an address.
const HOST_BYTES_MAX: usize = 255;

/// The keys that a stream inherits from the top of the file.
fn common(section: &mut Section<'_>) -> Spec {
    let tos = section.written("tos", |text| spec::tos(text).map_err(|error| words(&error)));
    let size = section.integer("size", 0..=65_535, "bytes");
    let interval = section.written("interval", |text| span(text).map_err(|error| words(&error)));
    let count = section.integer("count", 0..=i64::MAX, "");
    let udp = section.integer("udp", 0..=65_535, "");
    Spec {
        tos: tos.map(|tos| tos.value),
        size: size.map(|size| size.value as u16),
        interval: interval.map(|interval| interval.value),
        count: count.map(|count| count.value as u64),
        udp: udp.map(|udp| udp.value as u16),
        ..Spec::default()
    }
}

/// Parses seconds as on the command line; a TOML number may have an exponent too.
fn span(text: &str) -> Result<Duration> {
    match text.parse::<f64>() {
        Ok(seconds) if text.contains(['e', 'E']) => spec::seconds(&seconds.to_string()),
        _ => spec::seconds(text),
    }
}

/// The fault and the correct form, which the command line separates by a colon.
fn words(error: &anyhow::Error) -> String {
    error.to_string().replacen(": ", "; ", 1)
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
        let specs = parse("interval = 1e-2\n[[stream]]\nhost = \"a\"\n").unwrap();
        assert_eq!(specs[0].interval, Some(Duration::from_millis(10)));
    }

    #[test]
    fn each_fault_has_its_place_and_a_remedy() {
        for (text, why) in [
            (
                "",
                "stream: is missing; write [[stream]] with host = \"192.0.2.1\"",
            ),
            (
                "x = 1\n[[stream]]\nhost = \"a\"\n",
                "1:1: x: unknown key; known here: tos, size, interval, count, udp, stream",
            ),
            (
                "[[stream]]\nhost = \"a\"\nsise = 3\n",
                "3:1: stream[1].sise: unknown key; did you mean size?",
            ),
            (
                "[[stream]]\nhost = \"a\"\ntos = 300\n",
                "3:7: stream[1].tos: TOS 300 is impossible; an octet is 0 to 255 (0xff)",
            ),
            (
                "interval = \"1s\"\n[[stream]]\nhost = \"a\"\n",
                "1:12: interval: \"1s\" is no number of seconds; write 1, 0.2 or 0.002",
            ),
            (
                "[[stream]]\nhost = \"\"\n",
                "2:8: stream[1].host: is empty; it must have 1 to 255 bytes",
            ),
            (
                "[[stream]]\nsize = 3\n",
                "1:1: stream[1].host: is missing; write host = \"192.0.2.1\"",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().lines(), [why], "{text:?}");
        }
        assert_eq!(parse("size = 1e9\ntos = []\n").unwrap_err().len(), 3);
    }
}
