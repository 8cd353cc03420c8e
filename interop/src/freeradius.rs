//! Debian's freeradius on loopback: it accepts or rejects users, and records accounting in a file.
//!
//! Its configuration is written here and refers to nothing outside the test's directory except its modules and
//! dictionaries. Debian's own configuration is readable only by its group, and listens on other addresses.

use crate::net::Namespace;
use crate::process::Process;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

const START_MAX: Duration = Duration::from_secs(15);

/// The secret shared with headend.
pub(crate) const SECRET: &str = "topsecret";

/// A running freeradius, on its ordinary ports of 127.0.0.1.
pub(crate) struct FreeRadius {
    /// Its log has its output about each packet.
    pub(crate) process: Process,
    directory: PathBuf,
}

/// Whether Access-Requests and their replies carry a Message-Authenticator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Replies {
    /// It requires one in each request, and is configured to add one to each reply.
    Proven,
    /// It requires none and adds none, which is its default.
    Bare,
}

/// Whether it authenticates by EAP-MD5 and EAP-TLS. Its directory then has `ca.pem`, `server.pem` and `server.key`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Eap {
    On,
    Off,
}

/// Writes its configuration and `users` into `directory`, for one that runs in the directory `home`. Returns where the
/// configuration is.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write_settings(
    directory: &Path,
    home: &Path,
    users: &str,
    replies: Replies,
    eap: Eap,
) -> Result<PathBuf> {
    let settings = directory.join("raddb");
    std::fs::create_dir_all(&settings)?;
    let users = format!("{users}\nDEFAULT Auth-Type := Reject\n");
    std::fs::write(settings.join("users"), users)?;
    std::fs::write(
        settings.join("radiusd.conf"),
        configuration(home, replies, eap),
    )?;
    Ok(settings)
}

impl FreeRadius {
    /// Starts it with `users`, in the format of users(5), and waits until it serves. In the same directory it
    /// continues its earlier records.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub(crate) fn start(
        namespace: &Namespace,
        directory: &Path,
        users: &str,
        replies: Replies,
    ) -> Result<FreeRadius> {
        let settings = write_settings(directory, directory, users, replies, Eap::Off)?;
        let log = std::fs::read_to_string(directory.join("freeradius.log")).unwrap_or_default();
        let before = log.lines().filter(|line| line.contains(READY)).count();
        let mut command = namespace.command("freeradius");
        command.args(["-f", "-l", "stdout", "-xx", "-d"]);
        command.arg(&settings);
        let mut process = Process::start(command, "freeradius", directory)?;
        // Its log continues that of an earlier process.
        process.wait_for_lines(READY, before + 1, START_MAX)?;
        Ok(FreeRadius {
            process,
            directory: directory.to_owned(),
        })
    }

    /// Ends it.
    ///
    /// # Errors
    /// It does not end.
    pub(crate) fn stop(self) -> Result<()> {
        self.process.stop().map(drop)
    }

    /// Its accounting records, in order.
    pub(crate) fn records(&self) -> Vec<Record> {
        records(&self.directory)
    }
}

/// The accounting records of the freeradius in a directory, in order.
pub(crate) fn records(directory: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(directory.join("detail")).unwrap_or_default();
    // The last may be incomplete.
    let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
    whole.split("\n\n").filter_map(Record::parse).collect()
}

/// An accounting record in freeradius's format.
#[derive(Debug, Clone)]
pub(crate) struct Record(BTreeMap<String, String>);

impl Record {
    fn parse(text: &str) -> Option<Record> {
        let lines = text.lines().filter(|line| line.starts_with('\t'));
        let pairs: BTreeMap<String, String> = lines
            .filter_map(|line| line.trim().split_once(" = "))
            .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
            .collect();
        (!pairs.is_empty()).then_some(Record(pairs))
    }

    /// The value of an attribute; empty if absent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The value of a numeric attribute; zero if absent.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.get(name).parse().unwrap_or(0)
    }

    /// Acct-Status-Type.
    pub(crate) fn status(&self) -> &str {
        self.get("Acct-Status-Type")
    }

    /// Acct-Session-Id.
    pub(crate) fn session(&self) -> &str {
        self.get("Acct-Session-Id")
    }

    /// User-Name.
    pub(crate) fn user(&self) -> &str {
        self.get("User-Name")
    }
}

/// Makes radclient send a Disconnect-Request with `attributes`, one per line, and returns its output.
///
/// # Errors
/// radclient is not installed.
pub(crate) fn disconnect(namespace: &Namespace, attributes: &str, secret: &str) -> Result<String> {
    let printed = radclient(namespace, "disconnect", attributes, secret)?;
    ensure!(printed.contains("Sent Disconnect-Request"), "{printed}");
    Ok(printed)
}

/// The same for a CoA-Request.
///
/// # Errors
/// radclient is not installed.
pub(crate) fn coa(namespace: &Namespace, attributes: &str, secret: &str) -> Result<String> {
    let printed = radclient(namespace, "coa", attributes, secret)?;
    ensure!(printed.contains("Sent CoA-Request"), "{printed}");
    Ok(printed)
}

fn radclient(namespace: &Namespace, what: &str, attributes: &str, secret: &str) -> Result<String> {
    let mut child = namespace
        .command("radclient")
        .args(["-x", "-t", "1", "-r", "1", "127.0.0.1:3799", what])
        .arg(secret)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("radclient")?;
    let mut input = child.stdin.take().context("radclient's input")?;
    input.write_all(attributes.as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    let mut printed = String::from_utf8_lossy(&output.stdout).into_owned();
    printed += &String::from_utf8_lossy(&output.stderr);
    Ok(printed)
}

/// Its output once it serves.
const READY: &str = "Ready to process requests";

fn configuration(directory: &Path, replies: Replies, eap: Eap) -> String {
    let directory = directory.display();
    let (eap_module, eap) = match eap {
        Eap::On => (eap_module(&directory), "eap\n"),
        Eap::Off => (String::new(), ""),
    };
    let (prove, required) = match replies {
        Replies::Proven => (
            "update reply {\n Message-Authenticator := 0x00\n }\n",
            "yes",
        ),
        Replies::Bare => ("", "no"),
    };
    format!(
        "prefix = /usr\nname = freeradius\nlibdir = /usr/lib/freeradius\nraddbdir = {directory}/raddb\nrun_dir = {directory}\n\
         db_dir = {directory}\nradacctdir = {directory}\nmax_request_time = 5\n\
         security {{\n reject_delay = 0\n}}\nthread pool {{\n start_servers = 1\n max_servers = 2\n}}\n\
         client lo {{\n ipaddr = 127.0.0.0/8\n secret = {SECRET}\n require_message_authenticator = {required}\n}}\n\
         modules {{\n files {{\n usersfile = {directory}/raddb/users\n }}\n chap {{\n }}\n pap {{\n }}\n\
         mschap {{\n use_mppe = no\n }}\n{eap_module}\
         detail {{\n filename = {directory}/detail\n permissions = 0600\n header = \"%t\"\n }}\n}}\n\
         server default {{\n\
         listen {{\n type = auth\n ipaddr = 127.0.0.1\n port = 1812\n }}\n\
         listen {{\n type = acct\n ipaddr = 127.0.0.1\n port = 1813\n }}\n\
         authorize {{\n {prove} files\n chap\n mschap\n {eap} pap\n }}\n\
         authenticate {{\n Auth-Type PAP {{\n pap\n }}\n Auth-Type CHAP {{\n chap\n }}\n\
         Auth-Type MS-CHAP {{\n mschap\n }}\n {eap} }}\n\
         accounting {{\n detail\n }}\n\
         post-auth {{\n Post-Auth-Type REJECT {{\n {prove} }}\n }}\n}}\n"
    )
}

/// TLS 1.2, in pieces of 1,024 bytes.
fn eap_module(directory: &impl std::fmt::Display) -> String {
    format!(
        " eap {{\n default_eap_type = md5\n md5 {{\n }}\n\
         tls-config common {{\n private_key_file = {directory}/server.key\n certificate_file = {directory}/server.pem\n\
         ca_file = {directory}/ca.pem\n fragment_size = 1024\n tls_min_version = \"1.2\"\n tls_max_version = \"1.2\"\n\
         ecdh_curve = \"\"\n }}\n tls {{\n tls = common\n }}\n }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_freeradius_writes_it() {
        let text = "Sat Nov 21 14:37:49 2026\n\tUser-Name = \"ann\"\n\tAcct-Status-Type = Start\n\tAcct-Input-Octets = 64";
        let record = Record::parse(text).unwrap();
        assert_eq!((record.user(), record.status()), ("ann", "Start"));
        assert_eq!(record.number("Acct-Input-Octets"), 64);
        assert_eq!(record.get("Class"), "");
    }
}
