//! The control socket's file: made without a moment in which others could use it,
//! and taken over from a daemon that has died, never from one that lives.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Listens on a Unix stream socket at `path` whose file has `mode`, for example
/// 0o660. The listener does not block.
///
/// The socket is bound under another name, gets its mode, begins to listen and only
/// then gets its name. A file that a dead process left there is replaced.
///
/// # Errors
/// `AddrInUse` if somebody answers there; `AlreadyExists` if the file is no socket;
/// else what the kernel said, for example that the directory does not exist.
pub fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Two daemons that start at once take turns here.
    let lock = rustix::fs::open(directory, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
    refuse_if_in_use(path)?;

    let fresh = with_suffix(path, &format!(".{}", std::process::id()));
    remove_if_there(&fresh)?;
    let socket = bind(&fresh)?;
    let named = fs::set_permissions(&fresh, fs::Permissions::from_mode(mode))
        .and_then(|()| Ok(rustix::net::listen(&socket, BACKLOG)?))
        .and_then(|()| fs::rename(&fresh, path));
    if let Err(error) = named {
        // The error that counts is the first one.
        let _ = fs::remove_file(&fresh);
        return Err(error);
    }
    Ok(UnixListener::from(socket))
}

fn bind(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Refuses a path at which somebody answers, or that is not a socket.
fn refuse_if_in_use(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        let text = format!("{} exists and is not a socket", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // Any other answer means that somebody listens, even one who has no time.
        _ => {
            let text = format!("another process answers on {}", path.display());
            Err(io::Error::new(io::ErrorKind::AddrInUse, text))
        }
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
