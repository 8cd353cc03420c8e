//! `[[garden]]`: walled gardens.

use std::net::IpAddr;
use std::sync::Arc;

use edge::Garden;
use filter::FilterSet;
use toml::de::DeTable;

use settings::{Notes, Section};

/// The most gardens.
const GARDENS_MAX: usize = 64;

/// Reads all gardens. `filters` are the filters that they may name, unless the file of filters has a fault; `dns` are the
/// name servers that are reached from a garden without a list of its own.
pub(super) fn read(
    root: &DeTable<'_>,
    notes: &Notes<'_>,
    filters: Option<&FilterSet>,
    dns: &[IpAddr],
) -> Arc<[Arc<Garden>]> {
    let mut gardens: Vec<Arc<Garden>> = Vec::new();
    for mut section in Section::each(root, "garden", "garden", notes) {
        let at = section.at();
        if gardens.len() == GARDENS_MAX {
            let message = format!("is the garden beyond {GARDENS_MAX}; give fewer");
            section.fault(at, "name", message);
        }
        if let Some(garden) = garden(&mut section, filters, dns) {
            if gardens.iter().any(|known| known.name == garden.name) {
                let message = format!(
                    "\"{}\" is given twice; give each garden its own",
                    garden.name
                );
                section.fault(at, "name", message);
            }
            gardens.push(Arc::new(garden));
        }
        section.finish();
    }
    gardens.into()
}

fn garden(
    section: &mut Section<'_>,
    filters: Option<&FilterSet>,
    dns: &[IpAddr],
) -> Option<Garden> {
    section.require("name", "give the garden a name: name = \"unpaid\"");
    let name = section.parsed("name", |text| match text {
        aaa::change::NO_GARDEN => Err("means no garden; give another name".to_owned()),
        text => aaa::queue::name(text),
    });
    let remedy = "give the address of the portal: portal = \"http://portal.example/\"";
    section.require("portal", remedy);
    let portal = section.string("portal");
    let filter = section.string("filter");
    if let (Some(named), Some(known)) = (&filter, filters)
        && known.find(&named.value).is_none()
    {
        let message = format!(
            "there is no filter \"{}\"; give [filter] with a file that has it",
            named.value
        );
        section.fault(named.at, "filter", message);
    }
    let resolver = |text: &str| {
        let wrong = |_| format!("\"{text}\" is not an IP address; write it as \"10.0.0.1\"");
        text.parse::<IpAddr>().map_err(wrong)
    };
    let has_list = section.has("dns");
    let own = section.list_or_none("dns", "10.0.0.1", resolver);
    let resolvers = match has_list {
        true => own.into_iter().map(|one| one.value).collect(),
        false => dns.to_vec(),
    };
    let (name, portal) = (name?.value, portal?);
    let filter = filter.as_ref().map(|filter| &*filter.value);
    match Garden::new(&name, filter, &portal.value, resolvers) {
        Ok(garden) => Some(garden),
        Err(why) => {
            let message =
                format!("{why}; write it as \"http://portal.example/\" or \"192.0.2.80:80\"");
            section.fault(portal.at, "portal", message);
            None
        }
    }
}
