//! The programs that read a capture: this one, with several options; bare loops; other analysers.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;

/// A reader of captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceProgram {
    /// A bare loop that reads the file's records.
    Read,
    /// A bare loop that also parses each record down to its TCP header.
    Parse,
    /// Our analysis without its report.
    Quiet,
    /// The time of each sender, divided into causes.
    Why,
    Brief,
    Long,
    /// Our analysis with a time-sequence graph for each direction.
    Sequences,
    /// Our analysis with all graphs.
    Graphs,
    /// As `Quiet`, with that many threads.
    Threads(u32),
    Peer(Peer),
}

impl TraceProgram {
    pub(super) fn name(self) -> String {
        match self {
            TraceProgram::Read => "reading alone".into(),
            TraceProgram::Parse => "reading and parsing alone".into(),
            TraceProgram::Quiet => "headend trace -q".into(),
            TraceProgram::Why => "headend trace why".into(),
            TraceProgram::Brief => "headend trace".into(),
            TraceProgram::Long => "headend trace -l".into(),
            TraceProgram::Sequences => "headend trace -q -S".into(),
            TraceProgram::Graphs => "headend trace -q -G".into(),
            TraceProgram::Threads(threads) => format!("headend trace -q --threads {threads}"),
            TraceProgram::Peer(peer) => peer.name().into(),
        }
    }

    /// Whether this is a lower bound for the others.
    pub(super) fn is_floor(self) -> bool {
        matches!(self, TraceProgram::Read | TraceProgram::Parse)
    }

    pub(super) fn writes_graphs(self) -> bool {
        matches!(self, TraceProgram::Sequences | TraceProgram::Graphs)
    }

    /// The command line to read `file`; graphs go to `dir`.
    ///
    /// # Errors
    /// The path of this program is not known.
    pub(super) fn command(self, file: &Path, dir: &Path) -> Result<Vec<OsString>> {
        let threads = match self {
            TraceProgram::Threads(threads) => threads.to_string(),
            _ => "1".into(),
        };
        let trace = ["trace", "--threads", &threads];
        let own: Vec<&str> = match self {
            TraceProgram::Peer(peer) => {
                let words = peer.words().iter().map(OsString::from);
                return Ok(words.chain([file.into()]).collect());
            }
            TraceProgram::Read => vec!["bench", "trace-child", "read"],
            TraceProgram::Parse => vec!["bench", "trace-child", "parse"],
            TraceProgram::Why => vec!["trace", "why", "--threads", "1"],
            TraceProgram::Brief => trace.into(),
            TraceProgram::Long => [&trace[..], &["-l"]].concat(),
            TraceProgram::Quiet | TraceProgram::Threads(_) => [&trace[..], &["-q"]].concat(),
            TraceProgram::Sequences => [&trace[..], &["-q", "-S", "--output_dir"]].concat(),
            TraceProgram::Graphs => [&trace[..], &["-q", "-G", "--output_dir"]].concat(),
        };
        let mut words = vec![std::env::current_exe()?.into_os_string()];
        words.extend(own.into_iter().map(OsString::from));
        if self.writes_graphs() {
            words.push(dir.into());
        }
        words.push(file.into());
        Ok(words)
    }
}

/// Another analyser. Each is named as its Debian package is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Peer {
    Tcptrace,
    Tshark,
}

impl Peer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Peer::Tcptrace => "tcptrace",
            Peer::Tshark => "tshark",
        }
    }

    /// The options that come nearest to a report with one line for each connection.
    ///
    /// tshark's list of conversations makes it assign each packet to its connection; by default its
    /// dissector also analyses sequence numbers. Neither program looks up names.
    fn words(self) -> &'static [&'static str] {
        match self {
            Peer::Tcptrace => &["tcptrace", "-n"],
            Peer::Tshark => &["tshark", "-n", "-q", "-z", "conv,tcp", "-r"],
        }
    }

    /// The command line, for reports.
    pub(super) fn line(self) -> String {
        format!("{} FILE", self.words().join(" "))
    }

    /// How to install it, if it is missing.
    pub(super) fn missing(self) -> Option<String> {
        let name = self.name();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_here = std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
        (!is_here).then(|| format!("{name} is not installed: apt-get install {name}"))
    }
}
