//! The encoder: RFC 2741, sections 5 and 6, in network byte order.

use super::read::INTERNET;
use super::{Body, HEADER_LEN, Pdu, Range, Registration, Value, Variable, flag};
use crate::Oid;

impl Pdu {
    /// Appends the PDU.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut flags = flag::NETWORK_BYTE_ORDER;
        if self.context.is_some() {
            flags |= flag::NON_DEFAULT_CONTEXT;
        }
        out.extend([1, self.body.kind(), flags, 0]);
        for number in [self.session, self.transaction, self.packet, 0] {
            out.extend(number.to_be_bytes());
        }
        if let Some(context) = &self.context {
            octets(context, out);
        }
        self.body.emit(out);
        let payload = (out.len() - start - HEADER_LEN) as u32;
        out[start + HEADER_LEN - 4..start + HEADER_LEN].copy_from_slice(&payload.to_be_bytes());
    }
}

impl Body {
    const fn kind(&self) -> u8 {
        match self {
            Self::Open { .. } => 1,
            Self::Close(_) => 2,
            Self::Register(_) => 3,
            Self::Unregister(_) => 4,
            Self::Get(_) => 5,
            Self::GetNext(_) => 6,
            Self::GetBulk { .. } => 7,
            Self::TestSet(_) => 8,
            Self::CommitSet => 9,
            Self::UndoSet => 10,
            Self::CleanupSet => 11,
            Self::Notify(_) => 12,
            Self::Ping => 13,
            Self::IndexAllocate(_) => 14,
            Self::IndexDeallocate(_) => 15,
            Self::AddAgentCaps(..) => 16,
            Self::RemoveAgentCaps(_) => 17,
            Self::Response { .. } => 18,
        }
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Open {
                timeout_s,
                id,
                description,
            } => {
                out.extend([*timeout_s, 0, 0, 0]);
                oid(id, false, out);
                octets(description, out);
            }
            Self::Close(reason) => out.extend([*reason, 0, 0, 0]),
            Self::Register(what) => registration(what, what.timeout_s, out),
            Self::Unregister(what) => registration(what, 0, out),
            Self::Get(list) | Self::GetNext(list) => ranges(list, out),
            Self::GetBulk {
                non_repeaters,
                max_repetitions,
                ranges: list,
            } => {
                out.extend(non_repeaters.to_be_bytes());
                out.extend(max_repetitions.to_be_bytes());
                ranges(list, out);
            }
            Self::TestSet(list)
            | Self::Notify(list)
            | Self::IndexAllocate(list)
            | Self::IndexDeallocate(list) => list.iter().for_each(|one| one.emit(out)),
            Self::CommitSet | Self::UndoSet | Self::CleanupSet | Self::Ping => {}
            Self::AddAgentCaps(id, description) => {
                oid(id, false, out);
                octets(description, out);
            }
            Self::RemoveAgentCaps(id) => oid(id, false, out),
            Self::Response {
                uptime,
                error,
                index,
                variables,
            } => {
                out.extend(uptime.to_be_bytes());
                out.extend(error.to_be_bytes());
                out.extend(index.to_be_bytes());
                variables.iter().for_each(|one| one.emit(out));
            }
        }
    }
}

impl Variable {
    /// Appends the variable (section 5.4).
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.value.kind().to_be_bytes());
        out.extend([0, 0]);
        oid(&self.name, false, out);
        match &self.value {
            Value::Integer(number) => out.extend(number.to_be_bytes()),
            Value::Octets(string) | Value::Opaque(string) => octets(string, out),
            Value::ObjectId(id) => oid(id, false, out),
            Value::IpAddress(address) => octets(address, out),
            Value::Counter32(number) | Value::Gauge32(number) | Value::TimeTicks(number) => {
                out.extend(number.to_be_bytes());
            }
            Value::Counter64(number) => out.extend(number.to_be_bytes()),
            Value::Null | Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMibView => {}
        }
    }
}

impl Value {
    const fn kind(&self) -> u16 {
        match self {
            Self::Integer(_) => 2,
            Self::Octets(_) => 4,
            Self::Null => 5,
            Self::ObjectId(_) => 6,
            Self::IpAddress(_) => 64,
            Self::Counter32(_) => 65,
            Self::Gauge32(_) => 66,
            Self::TimeTicks(_) => 67,
            Self::Opaque(_) => 68,
            Self::Counter64(_) => 70,
            Self::NoSuchObject => 128,
            Self::NoSuchInstance => 129,
            Self::EndOfMibView => 130,
        }
    }
}

fn ranges(list: &[Range], out: &mut Vec<u8>) {
    for range in list {
        oid(&range.start, range.includes, out);
        oid(&range.end, false, out);
    }
}

fn registration(what: &Registration, first: u8, out: &mut Vec<u8>) {
    out.extend([first, what.priority, what.range, 0]);
    oid(&what.subtree, false, out);
    if what.range != 0 {
        out.extend(what.upper_bound.to_be_bytes());
    }
}

/// Appends an identifier; those below 1.3.6.1.x are shortened by their prefix (section 5.1).
fn oid(id: &Oid, includes: bool, out: &mut Vec<u8>) {
    let ids = id.ids();
    let short = ids.split_first_chunk::<5>().and_then(|(first, rest)| {
        let [a, b, c, d, prefix] = *first;
        let prefix = u8::try_from(prefix).ok().filter(|prefix| *prefix != 0)?;
        ([a, b, c, d] == INTERNET).then_some((prefix, rest))
    });
    let (prefix, rest) = short.unwrap_or((0, ids));
    out.extend([rest.len() as u8, prefix, u8::from(includes), 0]);
    rest.iter().for_each(|id| out.extend(id.to_be_bytes()));
}

fn octets(string: &[u8], out: &mut Vec<u8>) {
    out.extend((string.len() as u32).to_be_bytes());
    out.extend(string);
    out.resize(
        out.len() + (string.len().next_multiple_of(4) - string.len()),
        0,
    );
}
