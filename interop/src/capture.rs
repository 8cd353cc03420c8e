//! Captures of a test's wire, and tshark's decoding of them.

use crate::net::Namespace;
use crate::process::Process;
use crate::sandbox::Work;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const START_MAX: Duration = Duration::from_secs(10);

/// dumpcap hands packets over in blocks; after this delay it has received the last one.
const SETTLE: Duration = Duration::from_millis(300);

/// A running capture.
pub(crate) struct Capture {
    process: Process,
    file: PathBuf,
}

impl Capture {
    /// Captures the L2TP packets of a namespace's wire.
    ///
    /// # Errors
    /// dumpcap does not start.
    pub(crate) fn start(namespace: &Namespace, directory: &Path) -> Result<Capture> {
        let file = directory.join("wire.pcapng");
        let mut command = namespace.command("dumpcap");
        command
            .args(["-q", "-i", "wire", "-f", "udp port 1701", "-w"])
            .arg(&file);
        let mut process = Process::start(command, "dumpcap", directory)?;
        process.wait_for("File:", START_MAX)?;
        Ok(Capture { process, file })
    }

    /// Ends the capture and decodes it.
    ///
    /// # Errors
    /// See [`decode`].
    pub(crate) fn finish(mut self) -> Result<Decoded> {
        std::thread::sleep(SETTLE);
        self.process.signal(Signal::INT)?;
        self.process.wait_for_end(START_MAX)?;
        decode(&self.file, None)
    }

    /// Ends the capture and decodes it; tshark verifies every version 3 digest with `secret`.
    ///
    /// # Errors
    /// See [`decode`]; also a digest that tshark computes differently.
    pub(crate) fn finish_with(mut self, secret: &str) -> Result<Decoded> {
        std::thread::sleep(SETTLE);
        self.process.signal(Signal::INT)?;
        self.process.wait_for_end(START_MAX)?;
        let decoded = decode(&self.file, Some(secret))?;
        let wrong = decoded.fields(WRONG_DIGEST, &["frame.number"])?;
        ensure!(
            wrong.is_empty(),
            "tshark computes another digest for packets {wrong:?}"
        );
        Ok(decoded)
    }
}

/// The display filter for a digest that differs from the one tshark computes.
pub(crate) const WRONG_DIGEST: &str = "l2tp.incorrect_digest";

/// tshark's decoding of a capture without malformed packets.
pub(crate) struct Decoded {
    file: PathBuf,
    secret: Option<String>,
}

/// Control message types by their numbers, RFC 2661 section 3.2 and RFC 3931 section 3.1.
const TYPES: &[(&str, &str)] = &[
    ("SCCRQ", "1"),
    ("SCCRP", "2"),
    ("SCCCN", "3"),
    ("StopCCN", "4"),
    ("HELLO", "6"),
    ("OCRQ", "7"),
    ("OCRP", "8"),
    ("OCCN", "9"),
    ("ICRQ", "10"),
    ("ICRP", "11"),
    ("ICCN", "12"),
    ("CDN", "14"),
    ("WEN", "15"),
    ("SLI", "16"),
    ("ACK", "20"),
];

/// Decodes a capture; verifies version 3 digests if `secret` is given.
///
/// # Errors
/// A malformed packet, one that tshark reports an error in, one that is not L2TP; or no packet at all.
pub(crate) fn decode(file: &Path, secret: Option<&str>) -> Result<Decoded> {
    let decoded = Decoded {
        file: file.to_owned(),
        secret: secret.map(str::to_owned),
    };
    let broken = decoded.tshark(&[
        "-Y",
        "_ws.malformed || _ws.expert.severity == error || !l2tp",
    ])?;
    ensure!(broken.is_empty(), "tshark finds fault with:\n{broken}");
    ensure!(
        !decoded.fields("l2tp", &["frame.number"])?.is_empty(),
        "{}: no packet was captured",
        file.display()
    );
    Ok(decoded)
}

impl Decoded {
    /// Checks that these control messages are in the capture in this order, possibly with others in between.
    ///
    /// # Errors
    /// The first one that is missing.
    pub(crate) fn has_in_order(&self, names: &[&str]) -> Result<()> {
        let rows = self.fields("l2tp.avp.message_type", &["l2tp.avp.message_type"])?;
        let seen: Vec<String> = rows.into_iter().flatten().collect();
        let mut types = seen.iter();
        for name in names {
            let number = TYPES
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, number)| *number)
                .context("a type")?;
            ensure!(
                types.any(|seen| seen == number),
                "no {name} in its place among message types {seen:?}"
            );
        }
        Ok(())
    }

    /// The values of tshark's fields, one row per packet that matches the display filter.
    ///
    /// # Errors
    /// tshark does not know the field or filter.
    pub(crate) fn fields(&self, filter: &str, names: &[&str]) -> Result<Vec<Vec<String>>> {
        let mut arguments = vec!["-Y", filter, "-T", "fields"];
        names.iter().for_each(|name| arguments.extend(["-e", name]));
        let text = self.tshark(&arguments)?;
        Ok(text
            .lines()
            .map(|line| line.split('\t').map(str::to_owned).collect())
            .collect())
    }

    fn tshark(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("tshark");
        if let Some(secret) = &self.secret {
            command
                .arg("-o")
                .arg(format!("l2tp.shared_secret:{secret}"));
        }
        let output = command
            .arg("-r")
            .arg(&self.file)
            .args(arguments)
            .output()
            .context("cannot start tshark")?;
        if !output.status.success() {
            bail!(
                "tshark {}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Writes the golden messages of crate `wire` as a capture file, with a list of their names; errors are written
/// to a file, for the test to report.
pub(crate) fn write_goldens(root: &Path, work: &Work) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let example = [
        "run",
        "--quiet",
        "--package",
        "headend-wire",
        "--example",
        "goldens_pcap",
    ];
    let (names, packets) = match Command::new(cargo).args(example).current_dir(root).output() {
        Ok(output) if output.status.success() => (output.stderr, output.stdout),
        Ok(output) => (output.stderr, Vec::new()),
        Err(error) => (error.to_string().into_bytes(), Vec::new()),
    };
    // The test reports a missing file.
    let _ = std::fs::write(work.goldens(), packets);
    let _ = std::fs::write(work.goldens().with_extension("names"), names);
}
