//! The CoA-Request that changes a line's rate (RFC 5176, section 2.2), as the operator's RADIUS server sends it.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wire::radius::attribute::{USER_NAME, VENDOR_SPECIFIC};
use wire::radius::secret::verify_reply;
use wire::radius::vendor::{WISPR, wispr};
use wire::radius::{Packet, Writer, code};

use super::configs::RADIUS_SECRET;

/// Wait for a reply before the request is sent again, and number of transmissions.
const WAIT: Duration = Duration::from_secs(1);
const TRANSMISSIONS: u32 = 3;

/// The reply to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledged {
    /// From the first transmission to the reply.
    pub(super) took: Duration,
    pub(super) transmissions: u32,
}

/// Asks for a rate down of `rate_bps` for the subscriber `name`.
///
/// # Errors
/// The request was refused, or not answered.
pub(super) fn change_rate(
    socket: &UdpSocket,
    to: SocketAddr,
    name: &str,
    rate_bps: u32,
) -> Result<Acknowledged> {
    let mut request = Vec::new();
    let mut writer = Writer::new(&mut request, code::COA_REQUEST, 1, &[0; 16]);
    writer.message_authenticator();
    writer.attribute(USER_NAME, name.as_bytes());
    let mut rate = WISPR.to_be_bytes().to_vec();
    rate.extend([wispr::BANDWIDTH_MAX_DOWN, 6]);
    rate.extend(rate_bps.to_be_bytes());
    writer.attribute(VENDOR_SPECIFIC, &rate);
    writer
        .finish_signed(RADIUS_SECRET.as_bytes())
        .context("the CoA-Request")?;
    let authenticator = Packet::parse(&request)?.authenticator();
    socket.set_read_timeout(Some(WAIT))?;
    let started = Instant::now();
    let mut reply = [0; 4_096];
    for transmissions in 1..=TRANSMISSIONS {
        socket.send_to(&request, to)?;
        let Some(length) = receive(socket, &mut reply)? else {
            continue;
        };
        let took = started.elapsed();
        let packet = Packet::parse(&reply[..length])?;
        if !verify_reply(&packet, &authenticator, RADIUS_SECRET.as_bytes()) {
            bail!("the reply to the CoA-Request has a wrong authenticator");
        }
        return match packet.code() {
            code::COA_ACK => Ok(Acknowledged {
                took,
                transmissions,
            }),
            other => bail!("the daemon refused the CoA-Request: code {other}"),
        };
    }
    bail!("the daemon did not answer {TRANSMISSIONS} CoA-Requests");
}

/// Receives one datagram; `None` after the time-out.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match socket.recv(buffer) {
        Ok(length) => Ok(Some(length)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::radius::secret::verify_request;

    /// A server that answers one request with this code.
    fn answered_with(answer: u8) -> Result<Acknowledged> {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = server.local_addr().unwrap();
        let served = std::thread::spawn(move || {
            let mut buffer = [0; 4_096];
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            let request = Packet::parse(&buffer[..length]).unwrap();
            assert!(verify_request(&request, RADIUS_SECRET.as_bytes()));
            assert_eq!(request.code(), code::COA_REQUEST);
            let rate = request.find(VENDOR_SPECIFIC).unwrap();
            assert!(rate.value.ends_with(&7_000_000_u32.to_be_bytes()));
            let mut reply = Vec::new();
            let writer = Writer::new(
                &mut reply,
                answer,
                request.identifier(),
                &request.authenticator(),
            );
            writer.finish_signed(RADIUS_SECRET.as_bytes()).unwrap();
            server.send_to(&reply, from).unwrap();
        });
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let outcome = change_rate(&socket, to, "ann", 7_000_000);
        served.join().unwrap();
        outcome
    }

    #[test]
    fn an_acknowledged_change_has_its_time_and_a_refused_one_is_an_error() {
        assert_eq!(answered_with(code::COA_ACK).unwrap().transmissions, 1);
        let error = answered_with(code::COA_NAK).unwrap_err().to_string();
        assert!(error.contains("code 45"), "{error}");
    }
}
