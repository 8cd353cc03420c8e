//! The TCP download of a line: iperf3 if it is installed, or else a sender and a receiver of our own. Both go from the
//! server in the internet through the translation to the address of the line.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::place::{Place, SERVER};
use crate::traffic::tcp;

/// Size of one write in bytes.
const PART: usize = 128 * 1024;

/// iperf3 has ended this long after its last second, if there is a path.
const END_MAX: Duration = Duration::from_secs(15);

/// The pause between two looks at a process.
const NAP: Duration = Duration::from_millis(20);

/// The program that loads the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Program {
    /// iperf3, which must be installed
    Iperf3,
    /// A TCP connection of the demo itself
    Tcp,
}

impl Program {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::Tcp => "tcp",
        }
    }

    /// iperf3 if it is installed.
    pub(super) fn available() -> Self {
        match iperf3() {
            Some(_) => Self::Iperf3,
            None => Self::Tcp,
        }
    }
}

/// Where iperf3 is.
fn iperf3() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path).map(|directory| directory.join("iperf3"));
    all.find(|file| file.is_file())
}

/// A download that runs. Dropping it ends it.
#[derive(Default)]
pub(super) struct Download {
    /// iperf3's server, then its client.
    children: Vec<Child>,
    /// Both ends of our own connection, and their threads.
    streams: Vec<TcpStream>,
    threads: Vec<JoinHandle<()>>,
}

impl Download {
    /// Starts a download of `seconds` to the line with the address `to`.
    ///
    /// # Errors
    /// The program cannot be started, or there is no connection.
    pub(super) fn start(
        program: Program,
        place: &Place,
        to: Ipv4Addr,
        seconds: u64,
    ) -> Result<Self> {
        let mut download = Self::default();
        match program {
            Program::Iperf3 => {
                let file =
                    iperf3().context("iperf3 is not installed: --load tcp needs no program")?;
                download.serve(&file, place)?;
                download.call(&file, place, to, seconds)?;
            }
            Program::Tcp => download.connect(place, to)?,
        }
        Ok(download)
    }

    /// Starts iperf3's server, and waits until it listens.
    fn serve(&mut self, file: &Path, place: &Place) -> Result<()> {
        let mut command = Command::new(file);
        command.args(["-s", "-1", "--forceflush", "-B", &SERVER.to_string()]);
        let server = place.internet.command(&mut command)?;
        let server = server.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut server = server.spawn().context("cannot start iperf3")?;
        let output = server.stdout.take();
        self.children.push(server);
        for line in BufReader::new(output.context("iperf3's output")?).lines() {
            if line?.contains("Server listening") {
                return Ok(());
            }
        }
        bail!("iperf3's server ended")
    }

    fn call(&mut self, file: &Path, place: &Place, to: Ipv4Addr, seconds: u64) -> Result<()> {
        let (server, to, seconds) = (SERVER.to_string(), to.to_string(), seconds.to_string());
        let mut command = Command::new(file);
        command.args(["-c", &server, "-B", &to, "-R", "-J", "-t", &seconds]);
        let client = place.street.command(&mut command)?;
        let client = client.stdin(Stdio::null()).stdout(Stdio::piped());
        let client = client.spawn().context("cannot start iperf3")?;
        self.children.push(client);
        Ok(())
    }

    /// Opens our own connection from the line to the server, which sends.
    fn connect(&mut self, place: &Place, to: Ipv4Addr) -> Result<()> {
        let listener = place.internet.run(|| TcpListener::bind((SERVER, 0)))??;
        let server = SocketAddrV4::new(SERVER, listener.local_addr()?.port());
        let connected = place.street.run(|| tcp::connect(to, server))?;
        let line = connected.with_context(|| format!("cannot connect from {to} to {server}"))?;
        let (server, _) = listener.accept()?;
        self.streams = vec![line.try_clone()?, server.try_clone()?];
        self.threads.push(std::thread::spawn(move || send(server)));
        self.threads.push(std::thread::spawn(move || receive(line)));
        Ok(())
    }

    /// Waits for the end of iperf3, or ends our own connection. Returns the segments that were sent again, if the
    /// program counts them.
    ///
    /// # Errors
    /// iperf3's error, or it does not end: without a path to its server, it never ends.
    pub(super) fn finish(mut self) -> Result<Option<u64>> {
        let Some(client) = self.children.last_mut() else {
            return Ok(None);
        };
        let mut output = client.stdout.take().context("iperf3's output")?;
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            output.read_to_string(&mut text).map(|_| text)
        });
        let status = end_of(client)?;
        let text = reader.join().ok().context("iperf3's output")??;
        let report: Value = serde_json::from_str(&text).unwrap_or_default();
        if !status.success() || report["error"].is_string() {
            bail!("iperf3: {} ({status})", report["error"]);
        }
        Ok(report["end"]["sum_sent"]["retransmits"].as_u64())
    }
}

/// Waits until iperf3 has ended by itself.
fn end_of(client: &mut Child) -> Result<ExitStatus> {
    let started = Instant::now();
    loop {
        if let Some(status) = client.try_wait()? {
            return Ok(status);
        }
        if started.elapsed() > END_MAX {
            bail!("iperf3 did not end within {} s", END_MAX.as_secs());
        }
        std::thread::sleep(NAP);
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Both fail only if it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
        for stream in &self.streams {
            // It fails only if the connection has ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn send(mut to: TcpStream) {
    let part = vec![0x55; PART];
    while to.write_all(&part).is_ok() {}
}

fn receive(mut from: TcpStream) {
    let mut part = vec![0; PART];
    while let Ok(1..) = from.read(&mut part) {}
}
