//! The decoder: RFC 2741, sections 5 and 6.

use super::{
    Body, HEADER_LEN, Header, ITEMS_MAX, PAYLOAD_MAX, ParseError, Pdu, Range, Registration, Value,
    Variable, flag,
};
use crate::{OID_IDS_MAX, Oid};

/// The prefix that an identifier's `prefix` field continues (section 5.1).
pub(super) const INTERNET: [u32; 4] = [1, 3, 6, 1];

impl Header {
    /// Decodes a header.
    ///
    /// # Errors
    /// The version or the length of the payload: where the next PDU starts is not known then.
    pub fn parse(octets: &[u8; HEADER_LEN]) -> Result<Self, ParseError> {
        let flags = octets[2];
        let mut reader = Reader {
            rest: &octets[4..],
            is_big: flags & flag::NETWORK_BYTE_ORDER != 0,
        };
        if octets[0] != 1 {
            return Err(ParseError::Version(octets[0]));
        }
        let [session, transaction, packet, payload] =
            [reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?];
        let len = payload as usize;
        if len > PAYLOAD_MAX || !len.is_multiple_of(4) {
            return Err(ParseError::Payload(payload));
        }
        Ok(Self {
            kind: octets[1],
            flags,
            session,
            transaction,
            packet,
            payload: len,
        })
    }
}

impl Pdu {
    /// Decodes the payload of a PDU.
    ///
    /// # Errors
    /// What is wrong with it; the header can be answered.
    pub fn parse(header: &Header, payload: &[u8]) -> Result<Self, ParseError> {
        let mut reader = Reader {
            rest: payload,
            is_big: header.flags & flag::NETWORK_BYTE_ORDER != 0,
        };
        let has_context = header.flags & flag::NON_DEFAULT_CONTEXT != 0;
        let context = has_context.then(|| reader.octets()).transpose()?;
        let body = reader.body(header.kind)?;
        if !reader.rest.is_empty() {
            return Err(ParseError::Trailing);
        }
        Ok(Self {
            session: header.session,
            transaction: header.transaction,
            packet: header.packet,
            context,
            body,
        })
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    is_big: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], ParseError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(ParseError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(ParseError::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u16(&mut self) -> Result<u16, ParseError> {
        let octets = self.array()?;
        Ok(match self.is_big {
            true => u16::from_be_bytes(octets),
            false => u16::from_le_bytes(octets),
        })
    }

    fn u32(&mut self) -> Result<u32, ParseError> {
        let octets = self.array()?;
        Ok(match self.is_big {
            true => u32::from_be_bytes(octets),
            false => u32::from_le_bytes(octets),
        })
    }

    fn u64(&mut self) -> Result<u64, ParseError> {
        let octets = self.array()?;
        Ok(match self.is_big {
            true => u64::from_be_bytes(octets),
            false => u64::from_le_bytes(octets),
        })
    }

    /// An identifier, and its `include` field (section 5.1).
    fn oid(&mut self) -> Result<(Oid, bool), ParseError> {
        let [count, prefix, include, _] = self.array()?;
        let mut ids = Vec::with_capacity(usize::from(count) + 5);
        if prefix != 0 {
            ids.extend(INTERNET);
            ids.push(u32::from(prefix));
        }
        let total = ids.len() + usize::from(count);
        if total > OID_IDS_MAX {
            return Err(ParseError::Identifier(total));
        }
        for _ in 0..count {
            ids.push(self.u32()?);
        }
        let oid = Oid::new(&ids).ok_or(ParseError::Identifier(total))?;
        Ok((oid, include != 0))
    }

    /// An octet string with its padding (section 5.3).
    fn octets(&mut self) -> Result<Vec<u8>, ParseError> {
        let len = self.u32()? as usize;
        let octets = self.take(len)?.to_vec();
        self.take(len.next_multiple_of(4) - len)?;
        Ok(octets)
    }

    /// Reads as many as there are.
    fn all<T>(
        &mut self,
        one: impl Fn(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut all = Vec::new();
        while !self.rest.is_empty() {
            if all.len() == ITEMS_MAX {
                return Err(ParseError::Items);
            }
            all.push(one(self)?);
        }
        Ok(all)
    }

    fn range(&mut self) -> Result<Range, ParseError> {
        let (start, includes) = self.oid()?;
        let (end, _) = self.oid()?;
        Ok(Range {
            start,
            includes,
            end,
        })
    }

    fn variable(&mut self) -> Result<Variable, ParseError> {
        let kind = self.u16()?;
        self.u16()?;
        let (name, _) = self.oid()?;
        let value = match kind {
            2 => Value::Integer(self.u32()?.cast_signed()),
            4 => Value::Octets(self.octets()?),
            5 => Value::Null,
            6 => Value::ObjectId(self.oid()?.0),
            64 => {
                let octets = self.octets()?;
                let octets = octets.try_into().map_err(|_| ParseError::ValueType(kind))?;
                Value::IpAddress(octets)
            }
            65 => Value::Counter32(self.u32()?),
            66 => Value::Gauge32(self.u32()?),
            67 => Value::TimeTicks(self.u32()?),
            68 => Value::Opaque(self.octets()?),
            70 => Value::Counter64(self.u64()?),
            128 => Value::NoSuchObject,
            129 => Value::NoSuchInstance,
            130 => Value::EndOfMibView,
            unknown => return Err(ParseError::ValueType(unknown)),
        };
        Ok(Variable { name, value })
    }

    fn registration(&mut self, registers: bool) -> Result<Registration, ParseError> {
        let [first, priority, range, _] = self.array()?;
        let (subtree, _) = self.oid()?;
        let upper_bound = if range == 0 { 0 } else { self.u32()? };
        Ok(Registration {
            timeout_s: if registers { first } else { 0 },
            priority,
            range,
            subtree,
            upper_bound,
        })
    }

    fn body(&mut self, kind: u8) -> Result<Body, ParseError> {
        Ok(match kind {
            1 => {
                let [timeout_s, ..] = self.array::<4>()?;
                Body::Open {
                    timeout_s,
                    id: self.oid()?.0,
                    description: self.octets()?,
                }
            }
            2 => Body::Close(self.array::<4>()?[0]),
            3 => Body::Register(self.registration(true)?),
            4 => Body::Unregister(self.registration(false)?),
            5 => Body::Get(self.all(Self::range)?),
            6 => Body::GetNext(self.all(Self::range)?),
            7 => Body::GetBulk {
                non_repeaters: self.u16()?,
                max_repetitions: self.u16()?,
                ranges: self.all(Self::range)?,
            },
            8 => Body::TestSet(self.all(Self::variable)?),
            9 => Body::CommitSet,
            10 => Body::UndoSet,
            11 => Body::CleanupSet,
            12 => Body::Notify(self.all(Self::variable)?),
            13 => Body::Ping,
            14 => Body::IndexAllocate(self.all(Self::variable)?),
            15 => Body::IndexDeallocate(self.all(Self::variable)?),
            16 => Body::AddAgentCaps(self.oid()?.0, self.octets()?),
            17 => Body::RemoveAgentCaps(self.oid()?.0),
            18 => Body::Response {
                uptime: self.u32()?,
                error: self.u16()?,
                index: self.u16()?,
                variables: self.all(Self::variable)?,
            },
            unknown => return Err(ParseError::Kind(unknown)),
        })
    }
}
