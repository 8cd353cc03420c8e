//! The RADIUS server of the benchmark. It runs in a thread on the load's core, accepts every
//! request with a valid authenticator, and acknowledges every accounting record.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use reactor::{RecvBatch, SendBatch, UdpOptions, UdpSocket};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use wire::radius::secret::{Signature, signature, verify_request};
use wire::radius::{Packet, Writer, code};

/// The shared secret of server and LNS.
pub(crate) const SECRET: &str = "between us";

/// Messages read at a time, and the most requests that the kernel joins in one.
const BATCH: usize = 64;
const JOINED_MAX: usize = 64;

/// Longest wait before the thread checks whether it is to end.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The Access-Requests that a server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    /// Those with a valid Message-Authenticator.
    Signed,
    /// Those without one too.
    Unsigned,
}

/// A server that runs until this is dropped.
pub(crate) struct Responder {
    /// Its addresses for authentication and accounting.
    pub(crate) addresses: [SocketAddr; 2],
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    answered: AtomicU64,
}

impl Responder {
    /// Starts a server on two loopback ports, on the core of the calling thread.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn start(accepts: Accepts) -> io::Result<Self> {
        let options = UdpOptions {
            recv_buffer_bytes: Some(16 << 20),
            send_buffer_bytes: Some(4 << 20),
            gro: true,
            ..UdpOptions::default()
        };
        let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0).into(), &options);
        let mut sockets = [bind()?, bind()?];
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        Ok(Self {
            addresses: [sockets[0].local_addr(), sockets[1].local_addr()],
            shared,
            thread: Some(std::thread::spawn(move || {
                serve(&mut sockets, &theirs, accepts)
            })),
        })
    }

    /// Number of requests answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread does not panic on any input.
            let _ = thread.join();
        }
    }
}

/// Answers requests until asked to end or until a socket fails. After a failure, the LNS's requests
/// visibly go unanswered.
fn serve(sockets: &mut [UdpSocket; 2], shared: &Shared, accepts: Accepts) {
    let mut received = RecvBatch::new(BATCH);
    let mut out = SendBatch::new(BATCH * JOINED_MAX);
    while !shared.stop.load(Ordering::Relaxed) {
        let mut came = 0;
        for socket in &mut *sockets {
            match socket.recv(&mut received) {
                Ok(0) => continue,
                Ok(count) => came += count,
                Err(_) => return,
            }
            for request in received.iter() {
                if answer(request.bytes, accepts, out.begin()) {
                    out.commit(request.peer, None);
                    shared.answered.fetch_add(1, Ordering::Relaxed);
                }
            }
            socket.send(&mut out);
        }
        if came == 0 {
            let [one, other] = &*sockets;
            let mut fds = [
                PollFd::new(one, PollFlags::IN),
                PollFd::new(other, PollFlags::IN),
            ];
            // After a signal the loop also looks again.
            let _ = poll(&mut fds, Some(&LOOK_EVERY));
        }
    }
}

/// Appends the reply to a request; `false` if the request is not valid.
fn answer(request: &[u8], accepts: Accepts, out: &mut Vec<u8>) -> bool {
    let secret = SECRET.as_bytes();
    let Ok(packet) = Packet::parse(request) else {
        return false;
    };
    let authenticator = packet.authenticator();
    match packet.code() {
        code::ACCESS_REQUEST => {
            let signed = match signature(&packet, &authenticator, secret) {
                Signature::Right => true,
                Signature::Missing => accepts == Accepts::Unsigned,
                Signature::Wrong => false,
            };
            let id = packet.identifier();
            let mut reply = Writer::new(out, code::ACCESS_ACCEPT, id, &authenticator);
            reply.message_authenticator();
            signed && reply.finish_signed(secret).is_ok()
        }
        code::ACCOUNTING_REQUEST => {
            let id = packet.identifier();
            let reply = Writer::new(out, code::ACCOUNTING_RESPONSE, id, &authenticator);
            verify_request(&packet, secret) && reply.finish_signed(secret).is_ok()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use wire::radius::secret::verify_reply;

    use super::*;

    fn request(kind: u8, authenticator: [u8; 16], secret: &[u8]) -> Vec<u8> {
        let mut octets = Vec::new();
        let mut writer = Writer::new(&mut octets, kind, 7, &authenticator);
        writer.attribute(1, b"alice");
        if kind == code::ACCESS_REQUEST {
            writer.message_authenticator();
            writer.finish(secret).unwrap();
        } else {
            writer.finish_signed(secret).unwrap();
        }
        octets
    }

    #[test]
    fn what_is_signed_right_is_accepted_with_a_reply_that_is() {
        for (kind, authenticator, reply) in [
            (code::ACCESS_REQUEST, [5; 16], code::ACCESS_ACCEPT),
            (code::ACCOUNTING_REQUEST, [0; 16], code::ACCOUNTING_RESPONSE),
        ] {
            let asked = request(kind, authenticator, SECRET.as_bytes());
            let mut octets = Vec::new();
            assert!(answer(&asked, Accepts::Signed, &mut octets));
            let sent = Packet::parse(&asked).unwrap().authenticator();
            let packet = Packet::parse(&octets).unwrap();
            assert_eq!((packet.code(), packet.identifier()), (reply, 7));
            assert!(verify_reply(&packet, &sent, SECRET.as_bytes()));
            if reply == code::ACCESS_ACCEPT {
                let signed = signature(&packet, &sent, SECRET.as_bytes());
                assert_eq!(signed, Signature::Right);
            }
            assert!(!answer(
                &request(kind, authenticator, b"another"),
                Accepts::Unsigned,
                &mut Vec::new()
            ));
        }
        assert!(!answer(b"no packet", Accepts::Unsigned, &mut Vec::new()));
    }

    #[test]
    fn a_server_answers_by_its_socket_and_ends() {
        let responder = Responder::start(Accepts::Signed).unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let asked = request(code::ACCESS_REQUEST, [9; 16], SECRET.as_bytes());
        socket.send_to(&asked, responder.addresses[0]).unwrap();
        let mut octets = [0; 4096];
        let length = socket.recv(&mut octets).unwrap();
        let packet = Packet::parse(&octets[..length]).unwrap();
        assert_eq!(packet.code(), code::ACCESS_ACCEPT);
        while responder.answered() == 0 {
            std::thread::yield_now();
        }
    }
}
