//! Asks the configured RADIUS servers and verifies their replies (RFC 2865, RFC 5997).
//!
//! 1. A Status-Server with Message-Authenticator, which every current server answers.
//! 2. An Access-Request with a name that nobody has and with Message-Authenticator, for servers without Status-Server,
//!    or whose reply to it has no Message-Authenticator.
//! 3. The same without Message-Authenticator. A server drops a signed request that it cannot verify, so a wrong
//!    secret looks like silence. This unsigned request gets a reply signed with the server's secret, which shows
//!    that the secrets differ.
//!
//! Accounting addresses get only the Status-Server: any other request would leave a record. No request has a
//! subscriber's name.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use wire::radius::attribute::{NAS_IDENTIFIER, USER_NAME, USER_PASSWORD};
use wire::radius::secret::{Signature, hide_password, signature, verify_reply};
use wire::radius::{Authenticator, LENGTH_MAX, Packet, Writer, code};

use crate::host::{Answer, ServerFact};
use crate::wants::{Server, Wants};

/// How long each kind of request waits for its reply. Servers delay an Access-Reject, FreeRADIUS by a second.
const WAIT: Duration = Duration::from_millis(1_500);
/// Transmissions of each request within that time.
const TRANSMISSIONS: u32 = 2;
/// A name that no subscriber has.
const NAME: &[u8] = b"headend-doctor";

/// Asks every server, each in a thread of its own.
pub(super) fn ask_all(wants: &Wants) -> Vec<ServerFact> {
    std::thread::scope(|scope| {
        let ask = |server| scope.spawn(move || ask(server, &wants.nas_identifier));
        let asked: Vec<_> = wants.servers.iter().map(ask).collect();
        let servers = wants.servers.iter().zip(asked);
        let fact = |(server, asked): (&Server, std::thread::ScopedJoinHandle<'_, Answer>)| {
            let failed = |_| Answer::Unreachable(io::Error::other("the probe failed"));
            ServerFact {
                name: server.name.clone(),
                address: server.address,
                is_accounting: server.is_accounting,
                requires_signature: server.requires_signature,
                answer: asked.join().unwrap_or_else(failed),
            }
        };
        servers.map(fact).collect()
    })
}

/// The requests, in the order in which they are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Status,
    Access,
    Unsigned,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Status => "Status-Server",
            Self::Access => "Access-Request",
            Self::Unsigned => "Access-Request without Message-Authenticator",
        }
    }
}

fn ask(server: &Server, nas_identifier: &[u8]) -> Answer {
    let kinds: &[Kind] = match server.is_accounting {
        true => &[Kind::Status],
        false => &[Kind::Status, Kind::Access, Kind::Unsigned],
    };
    let mut best = Answer::Silence;
    for &kind in kinds {
        match ask_once(server, nas_identifier, kind) {
            Ok(Answer::Silence) => {}
            // What counts is whether replies to Access-Requests are signed; FreeRADIUS signs these apart.
            Ok(answer) if is_unsigned(&answer) && kind == Kind::Status && !server.is_accounting => {
                best = answer;
            }
            Ok(answer) => return answer,
            Err(error) => return Answer::Unreachable(error),
        }
    }
    best
}

fn is_unsigned(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Verified {
            is_signed: false,
            ..
        }
    )
}

fn ask_once(server: &Server, nas_identifier: &[u8], kind: Kind) -> io::Result<Answer> {
    let any: SocketAddr = match server.address {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server.address)?;
    reactor::probe::report_network_errors(&socket)?;
    let (request, authenticator) = request(server, nas_identifier, kind)?;
    let started = Instant::now();
    let mut seen = Answer::Silence;
    for turn in 1..=TRANSMISSIONS {
        socket.send(&request)?;
        let until = WAIT * turn / TRANSMISSIONS;
        while let Some(left) = until.checked_sub(started.elapsed()) {
            // A zero timeout would mean none.
            socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            let mut reply = [0; LENGTH_MAX];
            match socket.recv(&mut reply) {
                Ok(length) => {
                    let round_trip = started.elapsed();
                    let secret = server.secret.reveal();
                    match judge(&reply[..length], (kind, &authenticator), secret, round_trip) {
                        verified @ Answer::Verified { .. } => return Ok(verified),
                        // Anyone may have sent this; a right reply may still come.
                        other => seen = other,
                    }
                }
                Err(error) if is_timeout(&error) => break,
                Err(error) => return Err(error),
            }
        }
        if !matches!(seen, Answer::Silence) {
            break;
        }
    }
    Ok(seen)
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), TimedOut | WouldBlock | Interrupted)
}

/// A request of this kind, and its authenticator.
fn request(
    server: &Server,
    nas_identifier: &[u8],
    kind: Kind,
) -> io::Result<(Vec<u8>, Authenticator)> {
    let mut random = [0_u8; 33];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut random)?;
    let mut authenticator = [0; 16];
    authenticator.copy_from_slice(&random[..16]);
    let secret = server.secret.reveal();
    let mut packet = Vec::new();
    let code = match kind {
        Kind::Status => code::STATUS_SERVER,
        Kind::Access | Kind::Unsigned => code::ACCESS_REQUEST,
    };
    let mut writer = Writer::new(&mut packet, code, random[32], &authenticator);
    if kind != Kind::Unsigned {
        writer.message_authenticator();
    }
    writer.attribute(
        NAS_IDENTIFIER,
        &nas_identifier[..nas_identifier.len().min(253)],
    );
    if kind != Kind::Status {
        let mut hidden = Vec::new();
        hide_password(&random[16..32], secret, &authenticator, &mut hidden);
        writer.attribute(USER_NAME, NAME);
        writer.attribute(USER_PASSWORD, &hidden);
    }
    writer.finish(secret).map_err(io::Error::other)?;
    Ok((packet, authenticator))
}

/// What a datagram from the server says about the secrets.
fn judge(
    datagram: &[u8],
    (kind, authenticator): (Kind, &Authenticator),
    secret: &[u8],
    round_trip: Duration,
) -> Answer {
    let Ok(reply) = Packet::parse(datagram) else {
        return Answer::Malformed;
    };
    let known = [
        code::ACCESS_ACCEPT,
        code::ACCESS_REJECT,
        code::ACCESS_CHALLENGE,
        code::ACCOUNTING_RESPONSE,
    ];
    if !known.contains(&reply.code()) {
        return Answer::Malformed;
    }
    let to = kind.name();
    match signature(&reply, authenticator, secret) {
        Signature::Wrong => Answer::WrongSecret { to },
        _ if !verify_reply(&reply, authenticator, secret) => Answer::WrongSecret { to },
        found => Answer::Verified {
            to,
            is_signed: found == Signature::Right,
            round_trip,
        },
    }
}

#[cfg(test)]
mod tests;
