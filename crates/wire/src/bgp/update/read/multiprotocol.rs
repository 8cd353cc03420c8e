//! MP_REACH_NLRI and MP_UNREACH_NLRI: RFC 4760.

use super::{Attribute, Reader, error};
use crate::bgp::Notification;
use crate::bgp::attr::{self, code};
use crate::bgp::family::{AfiSafi, FamilyId};
use crate::bgp::nlri::Block;
use crate::bgp::notification::update;
use crate::bgp::update::What;

impl<'a> Reader<'a, '_> {
    /// MP_REACH_NLRI (RFC 4760, section 3; RFC 7606, sections 5.3 and 7.11).
    pub(super) fn reach(&mut self, attribute: &Attribute<'a>) -> Result<(), Notification> {
        let bad = || error(update::OPTIONAL, attribute.octets);
        let value = attribute.value;
        // RFC 6396, section 4.3.4: only the next hop.
        if let (Some(family), [len, next_hop @ ..]) = (self.table, value)
            && usize::from(*len) == next_hop.len()
        {
            self.mp_next_hop = Some((family, family.read_next_hop(next_hop).ok_or_else(bad)?));
            return Ok(());
        }
        let Some((&[a, b, c, len], rest)) = value.split_first_chunk::<4>() else {
            return Err(bad());
        };
        let family = AfiSafi::from_octets([a, b, c]).family();
        let (next_hop, rest) = rest.split_at_checked(usize::from(len)).ok_or_else(bad)?;
        let (_reserved, nlri) = rest.split_first().ok_or_else(bad)?;
        let family = match family {
            Some(family) if self.context.families.contains(family) => family,
            _ => {
                self.is_reachable = true;
                self.fault(attribute.code, What::Family, attribute.octets);
                return Ok(());
            }
        };
        self.mp_next_hop = Some((family, family.read_next_hop(next_hop).ok_or_else(bad)?));
        if self.table.is_none() {
            let has_ids = self.context.add_path[family.index()];
            self.announced = Block::check(nlri, family, has_ids).ok_or_else(bad)?;
        }
        self.is_reachable |= !nlri.is_empty();
        Ok(())
    }

    /// MP_UNREACH_NLRI (RFC 4760, section 4; RFC 7606, section 5.3).
    pub(super) fn unreach(&mut self, attribute: &Attribute<'a>) -> Result<(), Notification> {
        let bad = || error(update::OPTIONAL, attribute.octets);
        let (name, nlri) = attribute.value.split_first_chunk::<3>().ok_or_else(bad)?;
        match AfiSafi::from_octets(*name).family() {
            Some(family) if self.context.families.contains(family) => {
                let has_ids = self.context.add_path[family.index()];
                self.withdrawn = Block::check(nlri, family, has_ids).ok_or_else(bad)?;
            }
            _ => self.fault(attribute.code, What::Family, attribute.octets),
        }
        Ok(())
    }

    /// RFC 4724, section 2: only an MP_UNREACH_NLRI without routes.
    #[inline]
    pub(super) fn end_of_rib(&self, body: &[u8]) -> Option<FamilyId> {
        let [0, 0, 0, _, attributes @ ..] = body else {
            return None;
        };
        let mut walk = attr::iter(attributes);
        let attribute = walk.next()?;
        if attribute.code != code::MP_UNREACH || !walk.rest().is_empty() {
            return None;
        }
        let family = AfiSafi::from_octets(attribute.value.try_into().ok()?).family()?;
        self.context.families.contains(family).then_some(family)
    }
}
