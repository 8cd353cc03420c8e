//! The inputs of one node and the datagrams that it sent, recorded so that `replay` can repeat them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use base::{Instant, Route};

/// The most entries of a recording; further ones are left out, and the recording is marked as truncated.
const ENTRY_LIMIT: usize = 1 << 20;

/// The history of one machine: its inputs and the datagrams that it sent, in order.
///
/// As text (`to_string`, `parse`) it has one line per entry, with times in nanoseconds and bytes in hex, so that it
/// can be stored beside a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    pub(crate) started: Instant,
    entries: Vec<(Instant, Entry)>,
    pub(crate) truncated: bool,
}

/// One entry of a machine's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It received a datagram.
    Datagram {
        /// Source and destination.
        route: Route,
        /// The UDP payload.
        bytes: Vec<u8>,
    },
    /// Its deadline passed.
    Timeout,
    /// Its owner called it; the recording does not know which method.
    Command,
    /// It sent a datagram.
    Sent {
        /// Destination and source.
        route: Route,
        /// The UDP payload.
        bytes: Vec<u8>,
    },
}

impl Recording {
    pub(crate) fn new(started: Instant) -> Self {
        Self {
            started,
            entries: Vec::new(),
            truncated: false,
        }
    }

    /// The entries with their times, oldest first.
    pub fn entries(&self) -> &[(Instant, Entry)] {
        &self.entries
    }

    /// Whether it reached its limit (1,048,576 entries) and so ends before the run.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }
}

/// Records entries while a recording is on.
#[derive(Default)]
pub(crate) struct Recorder(Option<Recording>);

impl Recorder {
    pub(crate) fn start(&mut self, now: Instant) {
        self.0 = Some(Recording::new(now));
    }

    pub(crate) fn take(&mut self) -> Option<Recording> {
        self.0.take()
    }

    pub(crate) fn note(&mut self, now: Instant, entry: impl FnOnce() -> Entry) {
        let Some(recording) = &mut self.0 else { return };
        if recording.entries.len() < ENTRY_LIMIT {
            recording.entries.push((now, entry()));
        } else {
            recording.truncated = true;
        }
    }
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} started", self.started.as_nanos())?;
        for (at, entry) in &self.entries {
            let at = at.as_nanos();
            match entry {
                Entry::Datagram { route, bytes } => write_datagram(f, at, "datagram", route, bytes),
                Entry::Sent { route, bytes } => write_datagram(f, at, "sent", route, bytes),
                Entry::Timeout => writeln!(f, "{at} timeout"),
                Entry::Command => writeln!(f, "{at} command"),
            }?;
        }
        if self.truncated {
            writeln!(f, "truncated")
        } else {
            Ok(())
        }
    }
}

fn write_datagram(
    f: &mut fmt::Formatter<'_>,
    at: u64,
    kind: &str,
    route: &Route,
    bytes: &[u8],
) -> fmt::Result {
    write!(f, "{at} {kind} {} {} ", route.socket, route.peer)?;
    match route.local {
        Some(local) => write!(f, "{local} ")?,
        None => f.write_str("- ")?,
    }
    bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))?;
    writeln!(f)
}

/// A line of a recording's text that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    /// Its number, from 1.
    pub line: usize,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the recording is not an entry", self.line)
    }
}

impl std::error::Error for RecordingError {}

impl FromStr for Recording {
    type Err = RecordingError;

    fn from_str(text: &str) -> Result<Self, RecordingError> {
        let mut recording = Recording::new(Instant::ZERO);
        for (index, line) in text.lines().enumerate() {
            if line == "truncated" {
                recording.truncated = true;
                continue;
            }
            let (at, rest) = parse_line(line).ok_or(RecordingError { line: index + 1 })?;
            match rest {
                Some(entry) => recording.entries.push((at, entry)),
                None => recording.started = at,
            }
        }
        Ok(recording)
    }
}

/// The time and the entry; no entry for the line with the start time.
fn parse_line(line: &str) -> Option<(Instant, Option<Entry>)> {
    // The hex of an empty datagram is empty, so fields are split at single spaces.
    let mut fields = line.split(' ');
    let at = Instant::from_nanos(fields.next()?.parse().ok()?);
    let entry = match fields.next()? {
        "started" => None,
        "timeout" => Some(Entry::Timeout),
        "command" => Some(Entry::Command),
        "datagram" => {
            let (route, bytes) = parse_datagram(&mut fields)?;
            Some(Entry::Datagram { route, bytes })
        }
        "sent" => {
            let (route, bytes) = parse_datagram(&mut fields)?;
            Some(Entry::Sent { route, bytes })
        }
        _ => return None,
    };
    fields.next().is_none().then_some((at, entry))
}

fn parse_datagram<'a>(fields: &mut impl Iterator<Item = &'a str>) -> Option<(Route, Vec<u8>)> {
    let socket = fields.next()?.parse().ok()?;
    let peer = fields.next()?.parse().ok()?;
    let local = match fields.next()? {
        "-" => None,
        ip => Some(ip.parse::<IpAddr>().ok()?),
    };
    let hex = fields.next()?.as_bytes();
    let digit = |d: u8| char::from(d).to_digit(16);
    let byte = |pair: &[u8]| match *pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    };
    let bytes = hex.chunks(2).map(byte).collect::<Option<Vec<u8>>>()?;
    Some((
        Route {
            peer,
            local,
            socket,
        },
        bytes,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_back_as_the_same_recording() {
        let text = "5 started\n\
                    7 datagram 0 192.0.2.1:1701 192.0.2.2 c802ff\n\
                    7 sent 3 [2001:db8::1]:1701 - \n\
                    9 timeout\n\
                    11 command\n\
                    truncated\n";
        let recording: Recording = text.parse().unwrap();
        assert_eq!(recording.entries().len(), 4);
        assert!(recording.is_truncated());
        assert_eq!(recording.to_string(), text);
    }

    #[test]
    fn a_bad_line_is_named() {
        for bad in [
            "",
            "x timeout",
            "1",
            "1 nap",
            "1 timeout 2",
            "1 sent 0 192.0.2.1:1 - abc",
        ] {
            let text = format!("0 started\n{bad}\n");
            assert_eq!(
                text.parse::<Recording>(),
                Err(RecordingError { line: 2 }),
                "{bad}"
            );
        }
    }
}
