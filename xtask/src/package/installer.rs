//! `install.sh` against a release on a loopback server: it installs what is signed, and refuses everything else.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use super::{at, ensure, output};
use crate::dist::release::archive;
use crate::dist::target;
use crate::page;

const ARCHIVE: &str = "headend-x86_64-unknown-linux-musl.tar.gz";

/// What the programs that verify signatures are called; OpenSSL is in every `PATH` of the test.
const VERIFIERS: &[&str] = &["minisign", "rsign"];

type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Serves files until the process ends. Returns its address.
fn serve(files: &Files) -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let files = Arc::clone(files);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away is its own fault.
            let _ = answer(stream, &files);
        }
    });
    Ok(format!("http://{address}"))
}

fn answer(mut stream: TcpStream, files: &Files) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let name = request.split(' ').nth(1).unwrap_or_default();
    let name = name.trim_start_matches('/').to_owned();
    let body = files.lock().map_or(None, |files| files.get(&name).cloned());
    let status = if body.is_some() {
        "200 OK"
    } else {
        "404 Not Found"
    };
    let body = body.unwrap_or_default();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(&body)
}

struct Test {
    directory: PathBuf,
    script: PathBuf,
    files: Files,
    url: String,
    key: String,
}

/// Installs a signed release, then tries each way in which a release can be wrong.
pub(super) fn test(packaging: &Path) -> Result<String, String> {
    let directory = std::env::temp_dir().join(format!("headend-installer-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(at(&directory))?;
    let done = in_directory(packaging, &directory);
    let _ = fs::remove_dir_all(&directory);
    done
}

fn in_directory(packaging: &Path, directory: &Path) -> Result<String, String> {
    let script = packaging.join("install.sh");
    output(Command::new("sh").arg("-n").arg(&script))?;
    let key = key(directory, "key")?;
    let root = packaging.parent().unwrap_or(packaging);
    let files = release(root, directory, "key")?;
    let files: Files = Arc::new(Mutex::new(files));
    let url = serve(&files)?;
    let test = Test {
        directory: directory.to_owned(),
        script,
        files,
        url,
        key,
    };
    let mut verifiers = vec!["openssl"];
    for verifier in VERIFIERS {
        if find(verifier).is_some() {
            verifiers.push(verifier);
        }
    }
    let mut refused = 0;
    for verifier in &verifiers {
        test.installs(verifier)?;
        refused += test.refuses_what_is_wrong(verifier)?;
    }
    Ok(format!(
        "installs by {}; {refused} wrong releases are refused",
        verifiers.join(", ")
    ))
}

/// Makes a key without a password, and returns the line of its public part.
fn key(directory: &Path, name: &str) -> Result<String, String> {
    let public = directory.join(format!("{name}.pub"));
    let mut minisign = Command::new("minisign");
    minisign.args(["-G", "-W", "-f", "-p"]).arg(&public);
    output(minisign.arg("-s").arg(directory.join(name))).map_err(|fault| {
        format!("{fault}\nthe test of install.sh signs with minisign: apt install minisign")
    })?;
    let text = fs::read_to_string(&public).map_err(at(&public))?;
    Ok(text.lines().nth(1).unwrap_or_default().to_owned())
}

/// The files of a release that `key` has signed, archived as `cargo xtask dist` does. Its binary is a script, and its page
/// is empty.
fn release(root: &Path, directory: &Path, key: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let binary = directory.join("headend");
    fs::write(&binary, "#!/bin/sh\necho headend 0.1.0\n").map_err(at(&binary))?;
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).map_err(at(&binary))?;
    let page = directory.join(page::NAME);
    fs::write(&page, "<!doctype html>\n").map_err(at(&page))?;
    archive(root, &binary, &page, target::DEFAULT, directory)?;
    let sums = output(
        Command::new("sha256sum")
            .arg(ARCHIVE)
            .current_dir(directory),
    )?;
    let list = directory.join("SHA256SUMS");
    fs::write(&list, sums).map_err(at(&list))?;
    let mut minisign = Command::new("minisign");
    output(
        minisign
            .arg("-Sm")
            .arg(&list)
            .arg("-s")
            .arg(directory.join(key)),
    )?;
    let names = [ARCHIVE, "SHA256SUMS", "SHA256SUMS.minisig"];
    let read = |name: &str| {
        let file = directory.join(name);
        fs::read(&file)
            .map(|octets| (name.to_owned(), octets))
            .map_err(at(&file))
    };
    names.into_iter().map(read).collect()
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|place| place.join(program));
    places.find(|place| place.is_file())
}

impl Test {
    /// Runs the script with no verifier in its `PATH` but one.
    fn run(&self, verifier: &str, key: &str) -> Result<Output, String> {
        let bin = self.directory.join("bin");
        let _ = fs::remove_dir_all(&bin);
        fs::create_dir_all(&bin).map_err(at(&bin))?;
        let tools = "sh uname id mktemp rm curl sha256sum sed awk cmp head tail wc tar gzip find chmod mkdir cp mv cat";
        for tool in tools.split(' ').chain([verifier]) {
            let place = find(tool).ok_or_else(|| format!("{tool} is not installed"))?;
            symlink(place, bin.join(tool)).map_err(at(&bin))?;
        }
        let prefix = self.prefix();
        let _ = fs::remove_dir_all(&prefix);
        let mut command = Command::new("sh");
        command
            .arg(&self.script)
            .arg(&self.url)
            .env_clear()
            .env("PATH", &bin);
        command
            .env("HEADEND_KEY", key)
            .env("HEADEND_PREFIX", prefix);
        command
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())
    }

    fn prefix(&self) -> PathBuf {
        self.directory.join("prefix")
    }

    fn installs(&self, verifier: &str) -> Result<(), String> {
        let done = self.run(verifier, &self.key)?;
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let installed = ["bin/headend", "share/headend/headend-trace.html"];
        let is_installed = installed
            .iter()
            .all(|file| self.prefix().join(file).exists());
        ensure(
            done.status.success() && text.contains("0.1.0 is in") && is_installed,
            || {
                format!(
                    "{verifier}: {text}{}",
                    String::from_utf8_lossy(&done.stderr)
                )
            },
        )
    }

    fn refuses(&self, verifier: &str, key: &str, why: &str) -> Result<(), String> {
        let done = self.run(verifier, key)?;
        let text = String::from_utf8_lossy(&done.stderr);
        let is_refused = done.status.code() == Some(1) && text.contains(why);
        let is_clean = text.contains("nothing was installed") && !self.prefix().exists();
        ensure(is_refused && is_clean, || {
            format!("{verifier}, {why}: {}: {text}", done.status)
        })
    }

    /// Returns the number of wrong releases.
    fn refuses_what_is_wrong(&self, verifier: &str) -> Result<usize, String> {
        const UNSIGNED: &str = "is not signed by the release key";
        let good = self.lock().clone();
        let other = key(&self.directory, "other")?;
        self.refuses(verifier, &other, UNSIGNED)?;
        self.refuses(verifier, "", "HEADEND_KEY is not set")?;
        let edit = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
            let mut files = good.clone();
            change(files.entry(name.to_owned()).or_default());
            *self.lock() = files;
        };
        edit("SHA256SUMS", &|octets| octets.push(b'\n'));
        self.refuses(verifier, &self.key, UNSIGNED)?;
        edit("SHA256SUMS.minisig", &|octets| octets.clear());
        self.refuses(verifier, &self.key, UNSIGNED)?;
        edit(ARCHIVE, &|octets| octets.push(0));
        self.refuses(verifier, &self.key, "and the release lists")?;
        *self.lock() = BTreeMap::from([("SHA256SUMS".to_owned(), Vec::new())]);
        self.refuses(verifier, &self.key, "cannot fetch")?;
        *self.lock() = good;
        Ok(6)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.files
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
