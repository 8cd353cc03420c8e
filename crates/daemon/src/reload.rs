//! SIGHUP: reads users, pools, filters and BGP settings again. If a part has faults, the daemon logs
//! them and keeps the part's old state.

use std::path::PathBuf;
use std::sync::Arc;

use wire::bgp::Prefix;

use super::core::Core;
use super::log;
use crate::config::{self, FiltersFile};

/// The files that the configuration was read from.
pub(super) struct Files {
    pub(super) config: PathBuf,
}

impl Files {
    /// Reads again every setting that may change while the daemon runs.
    pub(super) fn reload(&self, core: &mut Core) {
        tracing::info!(
            "SIGHUP: reloading users, pools, filters and BGP peers; other settings need a restart"
        );
        let settings = match config::load(&self.config) {
            Ok(settings) => {
                log::advice(&settings.advice);
                routes(&settings, core);
                settings.subscribers
            }
            Err(faults) => {
                for line in faults.lines() {
                    tracing::error!("{line}");
                }
                tracing::error!("SIGHUP: no setting was changed");
                return;
            }
        };
        if let Some(file) = &settings.users {
            tracing::info!(users = file.users.len(), "users reloaded");
            core.authority.set_users(Some(Arc::clone(&file.users)));
        }
        if let Some(file) = &settings.filters {
            filters(file, core);
        }
        if !core.edge.config().terminate {
            return;
        }
        let own = vec![core.edge.config().address];
        match core.edge.pools_mut().reload(settings.pools, own) {
            Ok(()) => tracing::info!("pools reloaded"),
            Err(faults) => {
                let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
                keep("pools", &faults);
            }
        }
    }
}

/// Applies the BGP speaker's peers, policies and announcements.
fn routes(settings: &config::Settings, core: &mut Core) {
    match (&mut core.routes, &settings.bgp) {
        (Some(routes), Some(bgp)) => {
            let pools = pool_networks(&settings.subscribers.pools);
            routes.reload(bgp, pools, core.now);
        }
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) => {
            tracing::warn!("[bgp] cannot be added or removed without a restart");
        }
    }
}

/// The networks that the pools cover.
pub(super) fn pool_networks(pools: &[aaa::pools::Spec]) -> Vec<Prefix> {
    let ranges = pools.iter().flat_map(|pool| &pool.ranges);
    let networks = ranges.flat_map(|range| range.networks());
    networks
        .map(|network| Prefix::of(network.address(), network.length()))
        .collect()
}

/// Reads the filters. A connected subscriber keeps the filter that it has.
pub(super) fn filters(file: &FiltersFile, core: &mut Core) {
    match config::parse_filters(&file.path, &file.text, core.edge.filters().set()) {
        Ok(set) => {
            tracing::info!(filters = set.iter().count(), "filters reloaded");
            core.edge.filters_mut().replace(set);
        }
        Err(faults) => keep("filters", &faults),
    }
}

fn keep(what: &str, faults: &[String]) {
    for fault in faults {
        tracing::error!("{fault}");
    }
    tracing::error!("the {what} remain unchanged");
}
