//! The control socket's file: created so that other users can never access it early, and taken over from a dead
//! daemon but never from a living one.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::faults::part;
use crate::syscalls::{Call, enter};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Listens on a Unix stream socket at `path` whose file has `mode`, for example 0o660. The listener does not block.
///
/// The socket is bound under a temporary name, gets its mode, starts to listen and only then gets its name. A file
/// left by a dead process is replaced.
///
/// # Errors
/// `AddrInUse` if a process answers there; `AlreadyExists` if the file is no socket; else the kernel's error, for
/// example that the directory does not exist.
pub fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Two daemons that start at once take turns here.
    let lock = rustix::fs::open(directory, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
    refuse_if_in_use(path)?;

    remove_half_made(directory);
    let fresh = directory.join(format!(".{}.new", std::process::id()));
    remove_if_there(&fresh)?;
    let socket = bind(&fresh)?;
    let named = fs::set_permissions(&fresh, fs::Permissions::from_mode(mode))
        .and_then(|()| Ok(rustix::net::listen(&socket, BACKLOG)?))
        .and_then(|()| fs::rename(&fresh, path));
    if let Err(error) = named {
        // The first error counts.
        let _ = fs::remove_file(&fresh);
        return Err(error);
    }
    Ok(UnixListener::from(socket))
}

/// The next client; `None` if there is none now. It does not block.
///
/// # Errors
/// The kernel's error, for example that no descriptor is left.
pub fn accept(listener: &UnixListener) -> io::Result<Option<UnixStream>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let accepted = enter(Call::Accept).and_then(|()| rustix::net::accept_with(listener, flags));
    match accepted {
        Ok(stream) => Ok(Some(stream.into())),
        Err(rustix::io::Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Connects to the stream socket at `path`, without waiting.
///
/// # Errors
/// The kernel's error; `WouldBlock` if too many connections wait there.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    enter(Call::Socket)?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    enter(Call::Connect)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// A stream whose reads and writes are counted.
#[derive(Debug)]
pub struct Counted<'a>(pub &'a UnixStream);

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        enter(Call::Read)?;
        let end = part(Call::Read, into.len());
        self.0.read(&mut into[..end])
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        enter(Call::Write)?;
        self.0.write(&octets[..part(Call::Write, octets.len())])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn bind(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    enter(Call::Socket)?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    enter(Call::Bind)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Refuses a path at which a process answers, or that is not a socket.
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
        // Any other answer means that a process listens, perhaps a busy one.
        answer => {
            let who = answer.ok().and_then(|stream| process_of(&stream));
            let who = who.map_or("another process".to_owned(), |id| format!("process {id}"));
            let text = format!("{who} answers on {}", path.display());
            Err(io::Error::new(io::ErrorKind::AddrInUse, text))
        }
    }
}

/// The process that listens; `None` if it is in another PID namespace.
fn process_of(stream: &UnixStream) -> Option<i32> {
    let credentials = rustix::net::sockopt::socket_peercred(stream).ok()?;
    let process = credentials.pid.as_raw_nonzero().get();
    (process > 0).then_some(process)
}

/// Removes the sockets of processes that were killed before they gave them their names. Nobody is at that now: this
/// process has the lock.
fn remove_half_made(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix('.')?.strip_suffix(".new"));
        let is_ours = number.is_some_and(|number| number.parse::<u32>().is_ok());
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_socket()) {
            // What cannot be removed is in nobody's way.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A directory of its own for each test, removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("reactor-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn socket(&self) -> PathBuf {
            self.0.join("s")
        }

        fn files(&self) -> usize {
            fs::read_dir(&self.0).unwrap().count()
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_file_has_the_mode_asked_and_the_socket_answers() {
        let directory = Directory::new("mode");
        let listener = listen(&directory.socket(), 0o660).unwrap();
        let mode = fs::metadata(directory.socket())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o660);
        assert_eq!(directory.files(), 1);
        assert_eq!(
            listener.accept().unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );

        let mut client = UnixStream::connect(directory.socket()).unwrap();
        client.write_all(b"hello").unwrap();
        let (mut served, _) = listener.accept().unwrap();
        let mut text = [0; 5];
        served.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"hello");
    }

    #[test]
    fn the_file_of_a_dead_process_is_replaced() {
        let directory = Directory::new("stale");
        drop(listen(&directory.socket(), 0o660).unwrap());
        assert!(UnixStream::connect(directory.socket()).is_err());
        let _listener = listen(&directory.socket(), 0o600).unwrap();
        UnixStream::connect(directory.socket()).unwrap();
        assert_eq!(directory.files(), 1);
    }

    #[test]
    fn half_made_sockets_of_killed_processes_are_removed_and_nothing_else() {
        let directory = Directory::new("half");
        let half = directory.0.join(".4194305.new");
        drop(UnixListener::bind(&half).unwrap());
        for other in [".1.new", ".x.new", "1.new"] {
            fs::write(directory.0.join(other), "a file").unwrap();
        }
        let _listener = listen(&directory.socket(), 0o600).unwrap();
        assert!(!half.exists());
        assert_eq!(directory.files(), 4);
    }

    #[test]
    fn a_living_process_keeps_its_socket() {
        let directory = Directory::new("live");
        let listener = listen(&directory.socket(), 0o660).unwrap();
        let error = listen(&directory.socket(), 0o660).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let who = format!("process {} answers on ", std::process::id());
        assert!(error.to_string().starts_with(&who), "{error}");
        let client = UnixStream::connect(directory.socket()).unwrap();
        // The first connection is the probe by which the second listen() checked for a running daemon.
        assert!(listener.accept().is_ok() && listener.accept().is_ok());
        drop(client);
        assert_eq!(directory.files(), 1);
    }

    #[test]
    fn of_several_that_start_at_once_one_wins() {
        let directory = Directory::new("race");
        let started: Vec<_> = std::thread::scope(|scope| {
            let path = directory.socket();
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn({
                        let path = path.clone();
                        move || listen(&path, 0o660)
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(
            started.iter().filter(|listener| listener.is_ok()).count(),
            1
        );
        UnixStream::connect(directory.socket()).unwrap();
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let directory = Directory::new("file");
        fs::write(directory.socket(), "precious").unwrap();
        let error = listen(&directory.socket(), 0o660).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(directory.socket()).unwrap(), "precious");
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let directory = Directory::new("missing");
        let error = listen(&directory.0.join("no/s"), 0o660).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
