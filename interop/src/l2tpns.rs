//! Debian's l2tpns, an LNS, and its command line on TCP port 23.

use crate::net::Namespace;
use crate::process::Process;
use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// l2tpns waits for other members of its cluster before it serves, at least 1.9 s.
const START_MAX: Duration = Duration::from_secs(15);

const ANSWER_MAX: Duration = Duration::from_secs(5);

const PROMPT: &str = "l2tpns.test> ";

/// A running l2tpns.
pub(crate) struct L2tpns<'a> {
    /// Its output is in its log.
    pub(crate) process: Process,
    namespace: &'a Namespace,
}

impl<'a> L2tpns<'a> {
    /// Starts it on `address` and waits until it serves.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub(crate) fn start(
        namespace: &'a Namespace,
        directory: &Path,
        address: &str,
        secret: &str,
    ) -> Result<L2tpns<'a>> {
        L2tpns::start_with(namespace, directory, address, secret, "")
    }

    /// The same, with additional or changed settings.
    ///
    /// # Errors
    /// See [`L2tpns::start`].
    pub(crate) fn start_with(
        namespace: &'a Namespace,
        directory: &Path,
        address: &str,
        secret: &str,
        more: &str,
    ) -> Result<L2tpns<'a>> {
        let file = directory.join("l2tpns.conf");
        let pid = directory.join("l2tpns.pid");
        let settings = format!(
            "set debug 4\nset pid_file \"{}\"\nset hostname \"l2tpns.test\"\nset l2tp_secret \"{secret}\"\n\
             set bind_address {address}\nset cli_bind_address 127.0.0.1\nset peer_address 10.77.0.1\n\
             set primary_radius 127.0.0.1\nset radius_secret \"radius\"\nset radius_authtypes \"pap\"\n\
             set cluster_interface \"wire\"\nset cluster_hb_interval 2\nset cluster_hb_timeout 19\n{more}",
            pid.display()
        );
        std::fs::write(&file, settings)?;
        let mut command = namespace.command("l2tpns");
        command.arg("-c").arg(&file);
        let mut process = Process::start(command, "l2tpns", directory)?;
        process.wait_for("I am declaring myself the master", START_MAX)?;
        Ok(L2tpns { process, namespace })
    }

    /// Runs a command in its command line, and returns the output.
    ///
    /// # Errors
    /// It does not answer.
    pub(crate) fn ask(&self, command: &str) -> Result<String> {
        // The connection must be made inside the namespace, by a separate process.
        let program = std::env::current_exe().context("our own path")?;
        let output = self
            .namespace
            .command(program)
            .args(["cli", "127.0.0.1:23", command])
            .output()?;
        if !output.status.success() {
            bail!("l2tpns: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Connects to a command line, runs one command, and prints the output.
///
/// # Errors
/// No connection, or no prompt within a few seconds.
pub(crate) fn talk(address: &str, command: &str) -> Result<()> {
    let mut stream = TcpStream::connect(address).with_context(|| address.to_owned())?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    up_to_prompt(&mut stream)?;
    stream.write_all(format!("{command}\r\n").as_bytes())?;
    let answer = up_to_prompt(&mut stream)?;
    // It echoes the command.
    println!("{}", answer.trim_start_matches(command).trim());
    Ok(())
}

fn up_to_prompt(stream: &mut TcpStream) -> Result<String> {
    let mut bytes = Vec::new();
    let mut block = [0; 4096];
    loop {
        let length = stream.read(&mut block).context("waiting for the prompt")?;
        if length == 0 {
            bail!("closed before the prompt");
        }
        bytes.extend_from_slice(&block[..length]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some(answer) = text.strip_suffix(PROMPT) {
            return Ok(answer.to_owned());
        }
    }
}
