//! A directory for one test with captures, in which the program runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) const HEADEND: &str = env!("CARGO_BIN_EXE_headend");

/// An initially empty directory for one test.
pub(crate) struct Home(pub(crate) PathBuf);

/// The output of a run.
pub(crate) struct Said {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new(name: &str) -> Home {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("trace-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Home(path)
    }

    /// Copies a capture there, under its own name.
    pub(crate) fn with(self, capture: &str) -> Home {
        fs::copy(source(capture), self.0.join(capture)).unwrap();
        self
    }

    /// Writes bytes to a file there.
    pub(crate) fn put(&self, name: &str, octets: &[u8]) {
        fs::write(self.0.join(name), octets).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    /// The program with the arguments after `trace`, separated by blanks.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(HEADEND);
        command
            .arg("trace")
            .args(line.split(' '))
            .current_dir(&self.0)
            .env("TZ", "EST5EDT")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, line: &str) -> Said {
        said(self.command(line).output().unwrap())
    }

    /// The same with arguments that contain blanks.
    pub(crate) fn run_words(&self, words: &[&str]) -> Said {
        let mut command = Command::new(HEADEND);
        let command = command.arg("trace").args(words).current_dir(&self.0);
        said(command.stdin(Stdio::null()).output().unwrap())
    }

    /// Runs without errors; returns the output. Lost packets of the capture and names of written files are no errors.
    pub(crate) fn good(&self, line: &str) -> String {
        let said = self.run(line);
        let harmless = |line: &&str| {
            line.starts_with("headend: the capture lost packets: ")
                || line.starts_with("headend: wrote ")
        };
        let errors = said.err.lines().filter(|line| !harmless(line)).count();
        assert_eq!((said.status, errors), (0, 0), "{line}: {}", said.err);
        said.out
    }
}

pub(crate) fn said(output: Output) -> Said {
    Said {
        status: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A capture from tcptrace.
pub(crate) fn source(capture: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/trace/tcptrace")
        .join(capture)
}

/// The capture's bytes, decompressed.
pub(crate) fn plain(capture: &str) -> Vec<u8> {
    use std::io::Read;
    let mut octets = Vec::new();
    flate2::read::GzDecoder::new(fs::File::open(source(capture)).unwrap())
        .read_to_end(&mut octets)
        .unwrap();
    octets
}

/// The records of a little-endian pcap file, and its header.
pub(crate) fn records(pcap: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let (header, mut rest) = pcap.split_at(24);
    let big = header[0] == 0xa1;
    let mut records = Vec::new();
    while rest.len() >= 16 {
        let octets = [rest[8], rest[9], rest[10], rest[11]];
        let captured = if big {
            u32::from_be_bytes(octets)
        } else {
            u32::from_le_bytes(octets)
        };
        let (record, after) = rest.split_at(16 + captured as usize);
        records.push(record);
        rest = after;
    }
    (header, records)
}

/// An Ethernet frame from 10.0.0.1:1024 to 10.0.0.2:80.
pub(crate) fn frame(sequence: u32, flags: u8, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend_from_slice(&[8, 0]);
    let length = (40 + data.len()) as u8;
    frame.extend_from_slice(&[0x45, 0, 0, length, 0, 1, 0, 0, 64, 6, 0, 0]);
    frame.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 4, 0, 0, 80]);
    frame.extend_from_slice(&sequence.to_be_bytes());
    frame.extend_from_slice(&[0, 0, 0, 0, 0x50, flags, 16, 0, 0, 0, 0, 0]);
    frame.extend_from_slice(data);
    frame
}

/// A pcap file of frames, a microsecond apart.
pub(crate) fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut pcap = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    pcap.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
    for (at, frame) in frames.iter().enumerate() {
        let length = (frame.len() as u32).to_le_bytes();
        pcap.extend_from_slice(&[1, 0, 0, 0, at as u8, 0, 0, 0]);
        pcap.extend_from_slice(&length);
        pcap.extend_from_slice(&length);
        pcap.extend_from_slice(frame);
    }
    pcap
}
