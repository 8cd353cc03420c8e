//! What a service manager gives and gets: a listening socket (LISTEN_FDS), and the word that we serve (NOTIFY_SOCKET).

use std::ffi::OsStr;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use anyhow::{Context, Result, bail};
use listenfd::ListenFd;

/// The listening socket that the service manager opened, if it did.
///
/// # Errors
/// It passed something else.
pub(crate) fn inherited() -> Result<Option<TcpListener>> {
    let mut passed = ListenFd::from_env();
    if passed.len() > 1 {
        let count = passed.len();
        bail!(
            "LISTEN_FDS={count}: the service manager passed {count} sockets, and headend web takes one"
        );
    }
    if passed.len() == 0 {
        return Ok(None);
    }
    let wrong = "LISTEN_FDS: the socket that the service manager passed listens on no TCP port (ListenStream=ADDR:PORT)";
    let listener = passed.take_tcp_listener(0).context(wrong)?;
    match &listener {
        Some(listener) if !listens(listener)? => bail!(wrong),
        _ => Ok(listener),
    }
}

/// Whether connections can be accepted: a socket that is only bound has the same type.
fn listens(listener: &TcpListener) -> io::Result<bool> {
    Ok(rustix::net::sockopt::socket_acceptconn(listener)?)
}

/// Says that we serve, if a service manager wants to know. A manager that cannot be reached costs only this message: the
/// variable may be left over from a shell.
pub(crate) fn ready() {
    let place = std::env::var_os("NOTIFY_SOCKET").filter(|place| !place.is_empty());
    if let Some(Err(error)) = place.map(|place| notify(&place, "READY=1\n")) {
        eprintln!("headend web: NOTIFY_SOCKET: the service manager gets no message: {error}");
    }
}

/// Sends `text` to the socket at `place`: a path, or a name in the abstract namespace after `@`.
fn notify(place: &OsStr, text: &str) -> io::Result<()> {
    let address = match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(place)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(text.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Directory;

    #[test]
    fn a_socket_that_is_only_bound_does_not_listen() {
        use rustix::net::{AddressFamily, SocketType, bind, socket};
        let bound = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        bind(&bound, &any).unwrap();
        assert!(!listens(&TcpListener::from(bound)).unwrap());
        assert!(listens(&TcpListener::bind(any).unwrap()).unwrap());
    }

    #[test]
    fn a_service_manager_hears_that_we_serve() {
        let directory = Directory::new("notify");
        let path = directory.socket();
        let name = format!("headend-web-notify-{}", std::process::id());
        let hidden = SocketAddr::from_abstract_name(&name).unwrap();
        for (socket, place) in [
            (UnixDatagram::bind(&path).unwrap(), path.into_os_string()),
            (
                UnixDatagram::bind_addr(&hidden).unwrap(),
                format!("@{name}").into(),
            ),
        ] {
            notify(&place, "READY=1\n").unwrap();
            let mut heard = [0; 64];
            let length = socket.recv(&mut heard).unwrap();
            assert_eq!(&heard[..length], b"READY=1\n");
        }
    }
}
