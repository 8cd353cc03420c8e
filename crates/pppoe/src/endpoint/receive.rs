//! The header, the port and the kind of a packet: RFC 2516, sections 4 and 5.

use base::Instant;
use wire::pppoe::{Code, HEADER_LEN, Packet};

use super::{Endpoint, PACKET_MAX};
use crate::discard::Discard;
use crate::route::{Frame, Route};

impl Endpoint {
    pub(super) fn receive(&mut self, frame: Frame<'_>, now: Instant) -> Result<(), Discard> {
        let packet = wire::pppoe::parse(frame.bytes)?;
        let route = frame.route;
        if packet.code == Code::DATA {
            // It counts what it ignores.
            let _ = self.receive_data(&route, frame.bytes, now);
            return Ok(());
        }
        self.count_received(packet.code)?;
        self.check_frame(&frame, &packet)?;
        let Packet {
            session, payload, ..
        } = packet;
        match packet.code {
            Code::PADI => self.receive_padi(route, payload, now),
            Code::PADR => self.receive_padr(route, payload, now),
            Code::PADO => self.receive_pado(route, payload, now),
            Code::PADS => self.receive_pads(route, session, payload, now),
            _ => self.receive_padt(route, session, payload),
        }
    }

    fn count_received(&mut self, code: Code) -> Result<(), Discard> {
        let counters = &mut self.counters;
        let counter = match code {
            Code::PADI => &mut counters.received_padi,
            Code::PADO => &mut counters.received_pado,
            Code::PADR => &mut counters.received_padr,
            Code::PADS => &mut counters.received_pads,
            Code::PADT => &mut counters.received_padt,
            Code(_) => return Err(Discard::UnknownCode),
        };
        *counter += 1;
        Ok(())
    }

    /// What holds for Discovery packets of every kind.
    fn check_frame(&self, frame: &Frame<'_>, packet: &Packet<'_>) -> Result<(), Discard> {
        if self.port(frame.route.port).is_none() {
            return Err(Discard::UnknownPort);
        }
        if !frame.route.peer.is_unicast() {
            return Err(Discard::Source);
        }
        if frame.is_broadcast && packet.code != Code::PADI {
            return Err(Discard::Broadcast);
        }
        if HEADER_LEN + packet.payload.len() > PACKET_MAX {
            return Err(Discard::TooLong);
        }
        let has_none = matches!(packet.code, Code::PADI | Code::PADO | Code::PADR);
        if has_none && packet.session != 0 {
            return Err(Discard::SessionNotZero);
        }
        Ok(())
    }

    /// A PADT ends the session of its station, and is never answered (RFC 2516, section 5.5).
    fn receive_padt(&mut self, route: Route, id: u16, payload: &[u8]) -> Result<(), Discard> {
        let index = self.find_by_id(&route, id)?;
        self.end_by_peer(index, payload);
        Ok(())
    }
}
