//! Builds the canonical attributes when they differ from the received ones.

use std::net::Ipv4Addr;

use super::{Codes, Reader};
use crate::bgp::as4;
use crate::bgp::attr::{self, Attribute, code};

impl Reader<'_, '_> {
    /// The canonical attributes, when they differ from the received ones.
    #[cold]
    pub(super) fn rebuild(
        &self,
        attributes: &[u8],
        mut next_hop: Option<Ipv4Addr>,
        is_narrow: bool,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(attributes.len() + 64);
        let mut emit_next_hop = |out: &mut Vec<u8>| {
            if let Some(address) = next_hop.take() {
                attr::put(code::NEXT_HOP, &address.octets(), out);
            }
        };
        // RFC 6793, section 4.2.3: an AS other than AS_TRANS shows that the aggregating speaker did not know
        // the AS4 attributes.
        let trans = as4::AS_TRANS.to_be_bytes();
        let is_stale = self.as4_aggregator.is_some()
            && self
                .aggregator
                .is_some_and(|value| !value.starts_with(&trans));
        let mut done = Codes::default();
        for attribute in attr::iter(attributes) {
            let &Attribute { code, value, .. } = &attribute;
            let flags = attribute.flags & attribute.row().sendable();
            if !done.insert(code) || self.dropped.contains(code) {
                continue;
            }
            if code > code::NEXT_HOP {
                emit_next_hop(&mut out);
            }
            match code {
                code::AS_PATH if is_narrow => {
                    let as4_path = self.as4_path.filter(|_| !is_stale);
                    attr::emit(flags, code, &as4::merge_paths(value, as4_path), &mut out);
                }
                code::AGGREGATOR if is_narrow => {
                    let wide = match (self.aggregator, self.as4_aggregator) {
                        (_, Some(wide)) if !is_stale => *wide,
                        (Some(narrow), _) => as4::wide_aggregator(narrow),
                        (None, _) => continue,
                    };
                    attr::emit(flags, code, &wide, &mut out);
                }
                _ => {
                    let start = out.len();
                    out.extend_from_slice(attribute.octets);
                    out[start] = flags;
                }
            }
        }
        emit_next_hop(&mut out);
        out
    }
}
