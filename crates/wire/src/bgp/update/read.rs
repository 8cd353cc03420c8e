//! Reads an UPDATE's attributes in one pass, with a second pass only if they have to change. Start reading at
//! [`message`].
//!
//! Implements parts of RFC 5065, section 5; RFC 7607, section 2; RFC 8092, section 6; RFC 9234, section 5.

mod multiprotocol;
mod rebuild;

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::notification::{self, Notification, update};
use super::{
    FAULTS_MAX, Fault, NextHop, PeerKind, Treatment, Update, UpdateContext, Verdict, What,
};
use crate::bgp::as4::{self, PathFault};
use crate::bgp::attr::{self, Attribute, Form, Mandatory, code, flag};
use crate::bgp::family::{FamilyId, Place};
use crate::bgp::nlri::Block;
use crate::bgp::path::SegmentKind;

fn error(subcode: u8, data: &[u8]) -> Notification {
    Notification::with_data(notification::code::UPDATE, subcode, data)
}

/// A set of attribute types.
#[derive(Debug, Clone, Copy, Default)]
struct Codes([u64; 4]);

impl Codes {
    #[inline]
    fn contains(&self, code: u8) -> bool {
        self.0[usize::from(code >> 6)] & 1 << (code & 63) != 0
    }

    /// Whether the type is new.
    #[inline]
    fn insert(&mut self, code: u8) -> bool {
        let word = &mut self.0[usize::from(code >> 6)];
        let bit = 1 << (code & 63);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// State of the pass over a message's attributes.
struct Reader<'a, 'c> {
    context: &'c UpdateContext,
    /// For a table entry: its family.
    table: Option<FamilyId>,
    announced: Block<'a>,
    withdrawn: Block<'a>,
    /// An MP_REACH_NLRI of any family is present.
    is_reachable: bool,
    next_hop: Option<Attribute<'a>>,
    mp_next_hop: Option<(FamilyId, NextHop)>,
    as_path: Option<&'a [u8]>,
    as4_path: Option<&'a [u8]>,
    aggregator: Option<&'a [u8; 6]>,
    as4_aggregator: Option<&'a [u8; 8]>,
    seen: Codes,
    dropped: Codes,
    /// The range of the kept attributes, as long as they are contiguous.
    kept: Range<usize>,
    is_scattered: bool,
    /// An attribute has a flag that must be zero when sent.
    has_stray_flags: bool,
    faults: Vec<Fault<'a>>,
    fault_count: usize,
    treatment: Option<Treatment>,
}

/// Reads a message.
pub(super) fn message<'a>(
    body: &'a [u8],
    context: &UpdateContext,
) -> Result<Update<'a>, Notification> {
    let (withdrawn, attributes, nlri) = fields(body)?;
    let family = FamilyId::IN_FIELDS;
    let has_ids = context.add_path[family.index()];
    let network = || error(update::NETWORK, &[]);
    let mut withdrawn = Block::check(withdrawn, family, has_ids).ok_or_else(network)?;
    let mut nlri = Block::check(nlri, family, has_ids).ok_or_else(network)?;
    let mut reader = Reader::new(context, None);
    let has_v4 = !withdrawn.is_empty() || !nlri.is_empty();
    if has_v4 && !context.families.contains(family) {
        reader.is_reachable = !nlri.is_empty();
        (withdrawn, nlri) = (Block::EMPTY, Block::EMPTY);
        reader.fault(0, What::Family, &[]);
    }
    reader.is_reachable |= !nlri.is_empty();
    reader.walk(attributes)?;
    let has_v4 = !nlri.is_empty();
    let end_of_rib = match body {
        [0, 0, 0, 0] => context.families.contains(family).then_some(family),
        _ => reader.end_of_rib(body),
    };
    let mp = [reader.announced, reader.withdrawn];
    let mut update = reader.finish(attributes, has_v4)?;
    update.announced = [nlri, mp[0]];
    update.withdrawn = [withdrawn, mp[1]];
    update.end_of_rib = end_of_rib;
    Ok(update)
}

/// Reads the attributes of a table entry.
pub(super) fn table_entry<'a>(
    attributes: &'a [u8],
    family: FamilyId,
    context: &UpdateContext,
) -> Result<Update<'a>, Notification> {
    let mut reader = Reader::new(context, Some(family));
    reader.is_reachable = true;
    reader.walk(attributes)?;
    reader.finish(attributes, family.place() == Place::Fields)
}

/// Withdrawn Routes, Path Attributes, Network Layer Reachability Information.
type Fields<'a> = (&'a [u8], &'a [u8], &'a [u8]);

/// The three fields of a message (RFC 7606, section 3 (b)).
#[inline]
fn fields(body: &[u8]) -> Result<Fields<'_>, Notification> {
    let field = |octets| {
        let (len, rest) = <[u8]>::split_first_chunk::<2>(octets)?;
        rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))
    };
    field(body)
        .and_then(|(withdrawn, rest)| {
            let (attributes, nlri) = field(rest)?;
            Some((withdrawn, attributes, nlri))
        })
        .ok_or_else(|| error(update::MALFORMED_ATTRIBUTES, &[]))
}

impl<'a, 'c> Reader<'a, 'c> {
    fn new(context: &'c UpdateContext, table: Option<FamilyId>) -> Self {
        Reader {
            context,
            table,
            announced: Block::EMPTY,
            withdrawn: Block::EMPTY,
            is_reachable: false,
            next_hop: None,
            mp_next_hop: None,
            as_path: None,
            as4_path: None,
            aggregator: None,
            as4_aggregator: None,
            seen: Codes::default(),
            dropped: Codes::default(),
            kept: 0..0,
            is_scattered: false,
            has_stray_flags: false,
            faults: Vec::new(),
            fault_count: 0,
            treatment: None,
        }
    }

    #[cold]
    fn fault(&mut self, code: u8, what: What, octets: &'a [u8]) {
        let fault = Fault { code, what, octets };
        let treatment = fault.treatment();
        if treatment == Treatment::AttributeDiscard && what != What::Repeated {
            self.dropped.insert(code);
        }
        self.treatment = self.treatment.max(Some(treatment));
        self.fault_count += 1;
        // The first fault that withdraws the routes becomes the reason if the session must be reset, so it must
        // be stored even when the list is full.
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        } else if treatment == Treatment::TreatAsWithdraw
            && !self
                .faults
                .iter()
                .any(|fault| fault.treatment() == Treatment::TreatAsWithdraw)
        {
            self.faults[FAULTS_MAX - 1] = fault;
        }
    }

    /// Every attribute, once.
    fn walk(&mut self, attributes: &'a [u8]) -> Result<(), Notification> {
        let mut walk = attr::iter(attributes);
        let mut start = 0;
        while let Some(attribute) = walk.next() {
            let end = attributes.len() - walk.rest().len();
            if !self.seen.insert(attribute.code) {
                self.repeated(&attribute)?;
            } else if self.take(&attribute)? {
                self.keep(start..end);
            }
            start = end;
        }
        if !walk.rest().is_empty() {
            self.fault(0, What::PastEnd, walk.rest());
        }
        Ok(())
    }

    #[inline]
    fn keep(&mut self, range: Range<usize>) {
        if self.kept.end == range.start {
            self.kept.end = range.end;
        } else if self.kept.is_empty() {
            self.kept = range;
        } else {
            self.is_scattered = true;
        }
    }

    #[cold]
    fn repeated(&mut self, attribute: &Attribute<'a>) -> Result<(), Notification> {
        if attribute.row().on_error == Treatment::SessionReset {
            return Err(error(update::MALFORMED_ATTRIBUTES, &[]));
        }
        self.fault(attribute.code, What::Repeated, attribute.octets);
        Ok(())
    }

    /// Checks an attribute; returns whether it is kept.
    #[inline]
    fn take(&mut self, attribute: &Attribute<'a>) -> Result<bool, Notification> {
        const MASK: u8 = flag::OPTIONAL | flag::TRANSITIVE;
        let &Attribute {
            flags, code, value, ..
        } = attribute;
        let row = attribute.row();
        self.has_stray_flags |= flags & !row.sendable() != 0;
        if !row.is_known() {
            return self.take_unknown(attribute);
        }
        if flags & MASK != row.flags {
            if row.on_error == Treatment::SessionReset {
                return Err(error(update::OPTIONAL, attribute.octets));
            }
            self.fault(code, What::Flags, attribute.octets);
            return Ok(true);
        }
        let what = match row.form {
            _ if row.internal_only && self.context.peer == PeerKind::External => {
                Some(What::FromExternal)
            }
            Form::AsPath => {
                self.as_path = Some(value);
                self.check_path(value)
            }
            // Whether it applies is known only after all attributes have been read.
            Form::NextHop => {
                self.next_hop = Some(*attribute);
                None
            }
            Form::Aggregator => self.check_aggregator(value),
            Form::Reach => {
                self.dropped.insert(code);
                self.reach(attribute)?;
                return Ok(false);
            }
            Form::Unreach => {
                self.dropped.insert(code);
                self.unreach(attribute)?;
                return Ok(false);
            }
            Form::FourOctet => {
                self.take_as4(attribute);
                return Ok(false);
            }
            form => form.check(value),
        };
        if let Some(what) = what {
            self.fault(code, what, attribute.octets);
            return Ok(!self.dropped.contains(code));
        }
        Ok(true)
    }

    /// RFC 4271, section 5 and 6.3.
    #[cold]
    fn take_unknown(&mut self, attribute: &Attribute<'a>) -> Result<bool, Notification> {
        if attribute.flags & flag::OPTIONAL == 0 {
            return Err(error(update::UNRECOGNIZED_WELL_KNOWN, attribute.octets));
        }
        let is_transitive = attribute.flags & flag::TRANSITIVE != 0;
        if !is_transitive {
            self.dropped.insert(attribute.code);
        }
        Ok(is_transitive)
    }

    #[inline]
    fn check_path(&self, value: &[u8]) -> Option<What> {
        let summary = if self.context.four_octet {
            as4::check::<4>(value)
        } else {
            as4::check::<2>(value)
        };
        let summary = match summary {
            Ok(summary) => summary,
            Err(fault) => return Some(what_of(fault)),
        };
        if summary.has_zero {
            return Some(What::ZeroAs);
        }
        let starts_in_confed = matches!(summary.first, Some((SegmentKind::ConfedSequence, _)));
        match self.context.peer {
            PeerKind::External if summary.has_confed => return Some(What::Confederation),
            PeerKind::Confederation if !starts_in_confed => return Some(What::Confederation),
            PeerKind::External | PeerKind::Confederation | PeerKind::Internal => {}
        }
        let expected = self.context.first_as?;
        let expected = match u16::try_from(expected) {
            Err(_) if !self.context.four_octet => u32::from(as4::AS_TRANS),
            _ => expected,
        };
        let is_first = summary.first == Some((SegmentKind::Sequence, expected));
        (self.context.peer == PeerKind::External && !is_first).then_some(What::FirstAs)
    }

    fn check_aggregator(&mut self, value: &'a [u8]) -> Option<What> {
        let asn_len = if self.context.four_octet { 4 } else { 2 };
        if value.len() != asn_len + 4 {
            return Some(What::Length);
        }
        if value[..asn_len].iter().all(|&octet| octet == 0) {
            return Some(What::ZeroAs);
        }
        // Six octets only if AS numbers have two.
        self.aggregator = value.try_into().ok();
        None
    }

    /// AS4_PATH and AS4_AGGREGATOR (RFC 6793, section 6), which are never kept unchanged.
    #[cold]
    fn take_as4(&mut self, attribute: &Attribute<'a>) {
        let &Attribute { code, value, .. } = attribute;
        self.dropped.insert(code);
        let what = if self.context.four_octet {
            Some(What::FromFourOctet)
        } else if code == code::AS4_AGGREGATOR {
            self.as4_aggregator = value.try_into().ok();
            match self.as4_aggregator {
                None => Some(What::Length),
                Some([0, 0, 0, 0, ..]) => {
                    self.as4_aggregator = None;
                    Some(What::ZeroAs)
                }
                Some(_) => None,
            }
        } else if value.len() < 6 || !value.len().is_multiple_of(2) {
            Some(What::Length)
        } else {
            match as4::check::<4>(value) {
                Err(fault) => Some(what_of(fault)),
                Ok(summary) if summary.has_zero => Some(What::ZeroAs),
                Ok(summary) => {
                    self.as4_path = Some(value);
                    // Its confederation segments are dropped, the others used.
                    summary.has_confed.then_some(What::Confederation)
                }
            }
        };
        if let Some(what) = what {
            self.fault(code, what, attribute.octets);
        }
    }

    /// Checks that need all attributes.
    fn finish(mut self, attributes: &'a [u8], has_v4: bool) -> Result<Update<'a>, Notification> {
        // A peer may also announce IPv4 routes in MP_REACH_NLRI instead of the message's own fields.
        let mp_v4 = match self.mp_next_hop {
            Some((FamilyId::IN_FIELDS, NextHop::V4(address))) => Some(address),
            Some(_) | None => None,
        };
        self.check_next_hop(has_v4, mp_v4);
        let is_mp = |family: FamilyId| family.place() == Place::Multiprotocol;
        let has_mp = !self.announced.is_empty() || self.table.is_some_and(is_mp);
        if has_v4 || has_mp {
            self.check_mandatory(has_v4 && mp_v4.is_none());
        }
        let verdict = match self.treatment {
            Some(Treatment::SessionReset | Treatment::TreatAsWithdraw)
                if !self.is_reachable || self.treatment == Some(Treatment::SessionReset) =>
            {
                // Without routes, nothing can be treated as withdrawn (RFC 7606, section 5.2).
                let mut faults = self.faults.iter();
                let fault = faults.find(|fault| Some(fault.treatment()) == self.treatment);
                return Err(fault.map_or_else(
                    || error(update::MALFORMED_ATTRIBUTES, &[]),
                    Fault::notification,
                ));
            }
            Some(Treatment::SessionReset | Treatment::TreatAsWithdraw) => Verdict::TreatAsWithdraw,
            Some(Treatment::AttributeDiscard) | None => Verdict::Accept,
        };
        let inserted = mp_v4.filter(|_| self.next_hop.is_none() || !has_v4);
        let has_next_hop = self.next_hop.is_some() && has_v4;
        let is_narrow = !self.context.four_octet
            && verdict == Verdict::Accept
            && (self.as_path.is_some() || self.aggregator.is_some());
        let drops_next_hop = self.next_hop.is_some() && !has_next_hop;
        let is_changed = drops_next_hop || inserted.is_some() || is_narrow;
        let canonical = if is_changed || self.is_scattered || self.has_stray_flags {
            if drops_next_hop {
                self.dropped.insert(code::NEXT_HOP);
            }
            Cow::Owned(self.rebuild(attributes, inserted, is_narrow))
        } else {
            Cow::Borrowed(&attributes[self.kept.clone()])
        };
        Ok(Update {
            withdrawn: [Block::EMPTY; 2],
            announced: [Block::EMPTY; 2],
            attributes: canonical,
            mp_next_hop: self
                .mp_next_hop
                .filter(|(family, _)| family.place() == Place::Multiprotocol),
            verdict,
            end_of_rib: None,
            faults: self.faults,
            fault_count: self.fault_count,
        })
    }

    /// Checks NEXT_HOP, unless it must be ignored because all routes are in MP_REACH_NLRI (RFC 4760, section
    /// 3), and both next hop addresses.
    #[inline]
    fn check_next_hop(&mut self, has_v4: bool, mp_v4: Option<Ipv4Addr>) {
        if let Some(next_hop) = self.next_hop
            && (has_v4 || !self.seen.contains(code::MP_REACH))
        {
            let what = match <[u8; 4]>::try_from(next_hop.value) {
                Err(_) => Some(What::Length),
                Ok(address) if !is_host_v4(address.into()) => Some(What::NextHop),
                Ok(address) => mp_v4
                    .filter(|&mp_v4| mp_v4 != Ipv4Addr::from(address))
                    .map(|_| What::TwoNextHops),
            };
            if let Some(what) = what {
                self.fault(code::NEXT_HOP, what, next_hop.octets);
            }
        }
        let is_host = match self.mp_next_hop {
            Some((_, NextHop::V4(address))) => is_host_v4(address),
            Some((_, NextHop::V6(address, _))) => is_host_v6(address),
            None => true,
        };
        if !is_host {
            self.fault(code::MP_REACH, What::NextHop, &[]);
        }
    }

    /// RFC 7606, section 3 (d).
    #[inline]
    fn check_mandatory(&mut self, has_fields: bool) {
        const ALWAYS: u64 = attr::mandatory(Mandatory::Always);
        const IN_FIELDS: u64 = attr::mandatory(Mandatory::InFields);
        const INTERNAL: u64 = attr::mandatory(Mandatory::Internal);
        let mut needed = ALWAYS;
        if has_fields {
            needed |= IN_FIELDS;
        }
        if self.context.peer == PeerKind::Internal && self.table.is_none() {
            needed |= INTERNAL;
        }
        let mut missing = needed & !self.seen.0[0];
        while missing != 0 {
            self.fault(missing.trailing_zeros() as u8, What::Missing, &[]);
            missing &= missing - 1;
        }
    }
}

fn what_of(fault: PathFault) -> What {
    match fault {
        PathFault::Kind => What::SegmentKind,
        PathFault::PastEnd => What::SegmentPastEnd,
        PathFault::Cut => What::SegmentCut,
        PathFault::Empty => What::SegmentEmpty,
    }
}

/// Whether it can be a host address: not 0.0.0.0, not multicast or above (RFC 4271, section 6.3).
#[inline]
fn is_host_v4(address: Ipv4Addr) -> bool {
    !address.is_unspecified() && address.octets()[0] < 224
}

#[inline]
fn is_host_v6(address: Ipv6Addr) -> bool {
    !address.is_unspecified() && !address.is_multicast()
}
