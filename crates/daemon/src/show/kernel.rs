//! Rows of `headend show kernel`: the state that the daemon wants the kernel to have, and how much
//! of it the kernel has.

use std::net::IpAddr;

use control::rows;

use super::Rows;
use crate::core::Core;
use crate::kernel::{Keeper, Link};

/// Missing addresses or routes that a row names.
const NAMED: usize = 16;

pub(super) fn rows(core: &Core, out: &mut Rows) {
    if let Some(keeper) = &core.inside.keeper {
        device(keeper, out);
    }
    if let Some(clients) = &core.inside.clients {
        let place = place(core.inside.name());
        out.push(&rows::Kernel {
            wanted: clients.wanted(),
            present: clients.len(),
            restored: clients.restored(),
            refused: clients.refused(),
            ..row(&place, "client addresses")
        });
        if let Some(route) = clients.default_route() {
            out.push(&rows::Kernel {
                wanted: u64::from(route.is_wanted()),
                present: u64::from(route.is_there()),
                restored: route.restored(),
                reason: route.reason(),
                ..row(&place, "default route")
            });
        }
    }
    let routes = core.routes.as_ref().and_then(|routes| routes.installed());
    if let Some(counts) = routes {
        let place = format!("table {}", counts.table);
        out.push(&rows::Kernel {
            wanted: counts.wanted as u64,
            present: counts.present as u64,
            stale: counts.stale as u64,
            restored: counts.restored,
            swept: counts.swept,
            refused: counts.refused,
            ..row(&place, "learned routes")
        });
    }
}

fn place(device: &str) -> String {
    format!("device {device}")
}

fn row<'a>(place: &'a str, what: &'a str) -> rows::Kernel<'a> {
    rows::Kernel {
        schema: rows::Kernel::SCHEMA,
        place,
        what,
        wanted: 0,
        present: 0,
        stale: 0,
        restored: 0,
        swept: 0,
        refused: 0,
        missing: Vec::new(),
        reason: None,
    }
}

fn device(keeper: &Keeper, out: &mut Rows) {
    let place = place(keeper.name());
    out.push(&rows::Kernel {
        wanted: 1,
        present: u64::from(keeper.link != Link::Gone),
        reason: Some(match keeper.link {
            Link::Up => "up",
            Link::Down => "set down",
            Link::Gone => "gone",
        }),
        ..row(&place, "link")
    });
    let missing = &keeper.missing;
    let network = |(ip, length): &(IpAddr, u8)| format!("{ip}/{length}");
    let kinds: [(_, _, Vec<String>, _); 3] = [
        (
            "addresses",
            keeper.wanted.addresses(),
            missing.addresses.iter().map(network).collect(),
            keeper.restored.addresses,
        ),
        (
            "routes",
            keeper.wanted.routes(),
            missing.routes.iter().map(network).collect(),
            keeper.restored.routes,
        ),
        (
            "offloads",
            keeper.wanted.offloads(),
            missing
                .offloads
                .iter()
                .map(|one| one.name().to_owned())
                .collect(),
            keeper.restored.offloads,
        ),
    ];
    for (what, wanted, mut missing, restored) in kinds {
        let count = missing.len();
        missing.truncate(NAMED);
        out.push(&rows::Kernel {
            wanted: wanted as u64,
            present: (wanted - count) as u64,
            restored,
            missing,
            reason: keeper.reason.as_deref().filter(|_| count > 0),
            ..row(&place, what)
        });
    }
}
