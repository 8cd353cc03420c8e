//! Transmission: headers of queued messages, acknowledgements, digests.
//!
//! Implements parts of RFC 3931, section 6.15.

use base::{Instant, Route};
use wire::l2tp::{self, DigestType, MessageType, Version, Writer, digest};

use super::Endpoint;
use super::keys::Keys;
use crate::tunnel::Tunnel;

/// The offset of the message type in a body: the Message Type AVP is first.
const MESSAGE_TYPE_AT: usize = 6;

impl Endpoint {
    /// Puts a tunnel into the queue of tunnels with something to do.
    pub(super) fn mark_ready(&mut self, index: u32) {
        // If no tunnels may be held, this one may be removed before its last message is sent.
        if let Some(tunnel) = self.tunnels.at_mut(index)
            && !core::mem::replace(&mut tunnel.ready, true)
        {
            self.ready.push_back(index);
        }
    }

    pub(super) fn next_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        if let Some((route, bytes)) = self.refusals.pop_front() {
            out.extend_from_slice(&bytes);
            return Some(route);
        }
        while let Some(&index) = self.ready.front() {
            let Self {
                tunnels,
                pool,
                config,
                keys,
                counters,
                ..
            } = self;
            let Some(tunnel) = tunnels.at_mut(index).filter(|tunnel| tunnel.ready) else {
                self.ready.pop_front();
                continue;
            };
            let start = out.len();
            let keys = keys.of(tunnel.keys);
            if let Some((ns, at, again)) =
                tunnel.reliable.next_to_send(pool, &config.retransmit, now)
            {
                let message = pool.get(at);
                let kind = message_number(&message.body);
                emit(tunnel, ns, message.session, &message.body, out);
                tunnel.sent = tunnel.sent.wrapping_add(1);
                if again {
                    tunnel.retransmissions += 1;
                    counters.retransmissions += 1;
                } else {
                    counters.count_sent(kind);
                }
                let connects = message.connects.filter(|_| !again);
                let is_request = kind == MessageType::Sccrq.number();
                sign(tunnel, &mut out[start..], config.digest, keys, is_request);
                let route = tunnel.route;
                if let Some(session) = connects {
                    self.session_connected(session, now);
                }
                return Some(route);
            }
            if core::mem::take(&mut tunnel.reliable.ack_owed) {
                emit_acknowledgement(tunnel, config.digest, keys, out);
                counters.zlb_sent += 1;
                return Some(tunnel.route);
            }
            tunnel.ready = false;
            self.ready.pop_front();
            self.settle_timer(index);
        }
        None
    }
}

fn emit(tunnel: &Tunnel, ns: u16, session: u16, body: &[u8], out: &mut Vec<u8>) {
    let nr = tunnel.reliable.nr();
    l2tp::emit_control(out, tunnel.version, tunnel.remote_id, session, ns, nr, body);
}

/// Appends an acknowledgement alone: an ACK message on an authenticated tunnel, otherwise a ZLB.
fn emit_acknowledgement(tunnel: &Tunnel, kind: DigestType, keys: Option<&Keys>, out: &mut Vec<u8>) {
    let start = out.len();
    let ns = tunnel.reliable.next_ns();
    if tunnel.auth.is_some() {
        let mut body = Vec::with_capacity(64);
        let mut writer = Writer::new(&mut body, tunnel.version, MessageType::Ack);
        digest::placeholder(&mut writer, kind);
        emit(tunnel, ns, 0, &body, out);
        sign(tunnel, &mut out[start..], kind, keys, false);
    } else {
        emit(tunnel, ns, 0, &[], out);
    }
}

/// Fills in the Message Digest; each transmission needs a new one, since Nr may differ.
fn sign(
    tunnel: &Tunnel,
    message: &mut [u8],
    kind: DigestType,
    keys: Option<&Keys>,
    is_request: bool,
) {
    let (Some(auth), Some(keys), Version::V3) = (&tunnel.auth, keys, tunnel.version) else {
        return;
    };
    let (local, remote): (&[u8], &[u8]) = if is_request {
        (&[], &[])
    } else {
        (auth.local(), &auth.remote_nonce)
    };
    let signed = digest::sign(message, kind, &keys.digest, local, remote);
    debug_assert!(signed, "a message of an authenticated tunnel has a digest");
}

/// The message type of a body that we composed.
fn message_number(body: &[u8]) -> u16 {
    match body.get(MESSAGE_TYPE_AT..MESSAGE_TYPE_AT + 2) {
        Some(&[hi, lo]) => u16::from_be_bytes([hi, lo]),
        _ => 0,
    }
}
