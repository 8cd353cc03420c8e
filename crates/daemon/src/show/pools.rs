//! Rows of address pools and prefix pools.

use super::{Rows, Step};
use crate::core::Core;
use control::rows;

/// The row of the pool at the cursor; after the address pools those of prefixes, then the row of addresses
/// outside all pools.
pub(super) fn next(core: &Core, cursor: u32, out: &mut Rows) -> Step {
    let pools = core.edge.pools();
    let Some(pool) = pools.views().nth(cursor as usize) else {
        let beyond = cursor as usize - pools.views().count();
        if let Some(pool) = core.edge.prefixes().views().nth(beyond) {
            out.push(&rows::PrefixPool {
                schema: rows::PrefixPool::SCHEMA,
                name: pool.name,
                sticky: pool.sticky,
                length: pool.length,
                size: pool.size,
                used: pool.used,
                remembered: pool.remembered,
                taken: pool.taken,
                came_back: pool.came_back,
                refused: pool.full,
            });
            return Step::From(cursor + 1);
        }
        let outside = pools.outside();
        out.push(&rows::Outside {
            schema: rows::Outside::SCHEMA,
            used: outside.held,
            draining: outside.draining,
            refused_unknown_pool: outside.unknown_pool,
            refused_duplicate: outside.duplicates,
            refused_reserved: outside.reserved,
            refused_full: outside.full,
        });
        return Step::End;
    };
    out.push(&rows::Pool {
        schema: rows::Pool::SCHEMA,
        name: pool.name,
        sticky: pool.sticky,
        size: pool.size,
        used: pool.used,
        free: pool.free,
        remembered: pool.remembered,
        left_out: pool.left_out,
        taken: pool.taken,
        came_back: pool.came_back,
        refused: pool.full,
    });
    Step::From(cursor + 1)
}
