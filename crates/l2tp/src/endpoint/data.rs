//! Data messages (RFC 2661 5.4, RFC 3931 4.1): the session of a frame that arrived, and the header of one that leaves.

use base::{Instant, Route};
use wire::l2tp::{self, DATA_HEADER_MAX, DataV2, DataV3, Packet, Sublayer, Version};

use super::Endpoint;
use crate::discard::Discard;
use crate::session::{Cookie, Session, SessionKey, SessionState};
use crate::tunnel::Tunnel;

/// A frame that arrived in a data message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its session, which is established.
    pub session: SessionKey,
    /// The offset of the frame in the datagram.
    pub start: usize,
    /// The offset of its end.
    pub end: usize,
}

/// How to recognise and send frames of an established session without a call to the endpoint for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataWay {
    /// The ids in its data messages to us.
    pub ids: DataIds,
    /// The cookie that they must carry.
    pub cookie: Cookie,
    /// Whether a sublayer precedes their frames.
    pub sublayer: bool,
    /// Whether frames to the peer are numbered. If so, each header comes from [`Endpoint::data_header`].
    pub is_numbered: bool,
    /// The header of unnumbered frames to the peer.
    pub header: DataHeader,
}

/// The ids in a data message that identify its session on our side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataIds {
    /// The tunnel's and the session's (RFC 2661 3.1). Another peer may use the same.
    V2(u16, u16),
    /// The session's (RFC 3931 4.1).
    V3(u32),
}

/// The header of a frame that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    octets: [u8; DATA_HEADER_MAX],
    length: u8,
    /// The route of the datagram.
    pub route: Route,
}

impl DataHeader {
    /// The encoded header.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }
}

impl AsRef<[u8]> for DataHeader {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Endpoint {
    /// The frame of a datagram and its session; `None` for a control message, which is for [`base::Machine::handle`].
    ///
    /// Frames that arrive after one with a higher sequence number are discarded (RFC 2661 5.4, RFC 3931 4.6.1).
    ///
    /// # Errors
    /// The frame was ignored, and counted.
    pub fn receive_data(
        &mut self,
        route: &Route,
        bytes: &[u8],
        now: Instant,
    ) -> Result<Option<Received>, Discard> {
        if bytes.first().is_none_or(|octet| octet & 0x80 != 0) {
            return Ok(None);
        }
        let found = match l2tp::parse(bytes) {
            Ok(Packet::DataV2(data)) => self.data_v2(route, bytes, &data, now),
            Ok(Packet::DataV3(data)) => self.data_v3(route, bytes, &data, now),
            // `handle` counts a datagram that does not parse.
            Ok(Packet::Control(_)) | Err(_) => return Ok(None),
        };
        match found {
            Ok(received) => Ok(Some(received)),
            Err(why) => Err(self.counters.discard(why)),
        }
    }

    pub(super) fn data_v2(
        &mut self,
        route: &Route,
        bytes: &[u8],
        data: &DataV2<'_>,
        now: Instant,
    ) -> Result<Received, Discard> {
        let tunnel = self
            .tunnel_for(Version::V2, u32::from(data.tunnel), route.peer)
            .map_err(|why| match why {
                Discard::WrongSource => Discard::DataWrongSource,
                _ => Discard::UnknownSession,
            })?;
        let index = self
            .narrow_session(tunnel, u32::from(data.session))
            .ok_or(Discard::UnknownSession)?;
        let sequence = data.sequence.map(|(ns, _)| (u32::from(ns), 16));
        self.data_arrived(index, sequence, data.payload, bytes, now)
    }

    pub(super) fn data_v3(
        &mut self,
        route: &Route,
        bytes: &[u8],
        data: &DataV3<'_>,
        now: Instant,
    ) -> Result<Received, Discard> {
        let index = self
            .wide_session(data.session)
            .ok_or(Discard::UnknownSession)?;
        let session = self.session_at(index);
        let cookie = session.local_cookie;
        let good = data
            .cookie(cookie.as_bytes().len())
            .filter(|(received, _)| *received == cookie.as_bytes());
        let Some((_, mut frame)) = good else {
            return Err(Discard::UnknownSession);
        };
        if self.tunnel_at(session.tunnel).route.peer.ip() != route.peer.ip() {
            return Err(Discard::DataWrongSource);
        }
        let mut sequence = None;
        if session.local_sublayer {
            let (sublayer, rest) = Sublayer::parse(frame).ok_or(Discard::Malformed)?;
            sequence = sublayer.sequence.map(|number| (number, 24));
            frame = rest;
        }
        self.data_arrived(index, sequence, frame, bytes, now)
    }

    /// `sequence` is the number and its size in bits.
    fn data_arrived(
        &mut self,
        index: u32,
        sequence: Option<(u32, u32)>,
        frame: &[u8],
        bytes: &[u8],
        now: Instant,
    ) -> Result<Received, Discard> {
        let session = self.session_at_mut(index);
        if session.state != SessionState::Established {
            return Err(Discard::DataTooEarly);
        }
        if let Some((number, bits)) = sequence {
            if !session.takes(number, bits) {
                return Err(Discard::DataOutOfOrder);
            }
            // While an LNS numbers its frames, it expects ours to be numbered too (RFC 2661 5.4).
            if session.role.is_lac() && !session.sequencing {
                (session.sequencing, session.sequencing_by_peer) = (true, true);
            }
        } else if session.sequencing_by_peer {
            (session.sequencing, session.sequencing_by_peer) = (false, false);
        }
        let (key, tunnel) = (SessionKey(session.key), session.tunnel);
        self.tunnel_at_mut(tunnel).last_heard = now;
        let start = frame.as_ptr().addr() - bytes.as_ptr().addr();
        Ok(Received {
            session: key,
            start,
            end: start + frame.len(),
        })
    }

    /// Bytes of the IP, UDP and L2TP headers before a frame of this session.
    #[must_use]
    pub fn data_overhead(&self, session: SessionKey) -> Option<usize> {
        let record = self.sessions.get(session.0)?;
        let tunnel = self.tunnels.at(record.tunnel)?;
        let ip = if tunnel.route.peer.is_ipv4() { 20 } else { 40 };
        let own = match record.version {
            Version::V2 if record.sequencing => 10,
            Version::V2 => 6,
            Version::V3 => {
                let sublayer = 4 * usize::from(record.sublayer);
                l2tp::data::DATA_V3_HEADER_LEN + record.remote_cookie.as_bytes().len() + sublayer
            }
        };
        Some(ip + 8 + own)
    }

    /// The header of the next frame of an established session. Takes a sequence number if the peer wants those.
    pub fn data_header(&mut self, session: SessionKey) -> Option<DataHeader> {
        let record = self.sessions.get_mut(session.0)?;
        if record.state != SessionState::Established {
            return None;
        }
        let sequence = record.sequencing.then(|| record.next_sequence());
        let tunnel = self.tunnels.at(record.tunnel)?;
        Some(header(record, tunnel, sequence))
    }

    /// How to send frames of an established session. Valid until it ends or its frames become numbered.
    #[must_use]
    pub fn data_way(&self, session: SessionKey) -> Option<DataWay> {
        let record = self.sessions.get(session.0)?;
        if record.state != SessionState::Established {
            return None;
        }
        let tunnel = self.tunnels.at(record.tunnel)?;
        let ids = match record.version {
            Version::V2 => DataIds::V2(tunnel.local_id as u16, record.local_id as u16),
            Version::V3 => DataIds::V3(record.local_id),
        };
        Some(DataWay {
            ids,
            cookie: record.local_cookie,
            sublayer: record.local_sublayer,
            is_numbered: record.sequencing,
            header: header(record, tunnel, None),
        })
    }

    /// Whether frames of a session to its peer are numbered.
    #[must_use]
    pub fn is_numbered(&self, session: SessionKey) -> bool {
        let record = self.sessions.get(session.0);
        record.is_some_and(|record| record.sequencing)
    }

    /// A frame of a session arrived other than through [`Endpoint::receive_data`], so its peer is alive.
    pub fn heard(&mut self, session: SessionKey, now: Instant) {
        if let Some(record) = self.sessions.get(session.0) {
            let tunnel = record.tunnel;
            self.tunnel_at_mut(tunnel).last_heard = now;
        }
    }
}

fn header(record: &Session, tunnel: &Tunnel, sequence: Option<u32>) -> DataHeader {
    let mut octets = [0; DATA_HEADER_MAX];
    let length = match record.version {
        Version::V2 => {
            let (tunnel, session) = (tunnel.remote_id as u16, record.remote_id as u16);
            let sequence = sequence.map(|number| number as u16);
            l2tp::write_data_v2(&mut octets, tunnel, session, sequence)
        }
        Version::V3 => {
            let sublayer = record.sublayer.then_some(Sublayer { sequence });
            let cookie = record.remote_cookie.as_bytes();
            l2tp::write_data_v3(&mut octets, record.remote_id, cookie, sublayer)
        }
    };
    DataHeader {
        octets,
        length: length as u8,
        route: tunnel.route,
    }
}

impl Session {
    /// Whether a sequence number of that many bits is newer than all before. If so, records it.
    fn takes(&mut self, number: u32, bits: u32) -> bool {
        let modulus = 1_u32 << bits;
        let ahead = number.wrapping_sub(self.expected_sequence) % modulus;
        let is_new = core::mem::take(&mut self.any_sequence) || ahead < modulus / 2;
        if is_new {
            self.expected_sequence = number.wrapping_add(1) % modulus;
        }
        is_new
    }

    fn next_sequence(&mut self) -> u32 {
        let number = self.sent_sequence;
        self.sent_sequence = number.wrapping_add(1) & 0x00ff_ffff;
        number
    }
}
