//! The page: files of the directory `assets`, in the binary.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::fail::Fail;

/// Embeds each file with its name and type.
macro_rules! assets {
    ($($name:literal $kind:literal,)+) => {
        &[$(Asset {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!("../assets/", $name)),
        }),+]
    };
}

/// A file of the page.
struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

/// Every file of the directory.
const ASSETS: &[Asset] = assets![
    "app.js" "text/javascript; charset=utf-8",
    "chart.js" "text/javascript; charset=utf-8",
    "detail.js" "text/javascript; charset=utf-8",
    "dom.js" "text/javascript; charset=utf-8",
    "format.js" "text/javascript; charset=utf-8",
    "home.js" "text/javascript; charset=utf-8",
    "hosts.js" "text/javascript; charset=utf-8",
    "icon.svg" "image/svg+xml",
    "index.html" "text/html; charset=utf-8",
    "line.js" "text/javascript; charset=utf-8",
    "list.js" "text/javascript; charset=utf-8",
    "net.js" "text/javascript; charset=utf-8",
    "now.js" "text/javascript; charset=utf-8",
    "queues.js" "text/javascript; charset=utf-8",
    "rate.js" "text/javascript; charset=utf-8",
    "routes.js" "text/javascript; charset=utf-8",
    "series.js" "text/javascript; charset=utf-8",
    "spark.js" "text/javascript; charset=utf-8",
    "style.css" "text/css; charset=utf-8",
    "subscriber.js" "text/javascript; charset=utf-8",
    "subscribers.js" "text/javascript; charset=utf-8",
    "theme.js" "text/javascript; charset=utf-8",
];

/// The chart library, from the crate whose pages use it too.
const LIBRARY: &[Asset] = &[
    Asset {
        name: "uplot.js",
        kind: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../../../plot/vendor/uplot/uPlot.iife.min.js"),
    },
    Asset {
        name: "uplot.css",
        kind: "text/css; charset=utf-8",
        bytes: include_bytes!("../../../plot/vendor/uplot/uPlot.min.css"),
    },
];

/// `GET /`.
pub(crate) async fn index(headers: HeaderMap) -> Result<Response, Fail> {
    answer("index.html", &headers)
}

/// `GET /assets/NAME`.
pub(crate) async fn asset(
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Fail> {
    // A name that is not UTF-8 is none of ours.
    let name = name.map_or_else(|_| String::new(), |Path(name)| name);
    answer(&name, &headers)
}

fn answer(name: &str, headers: &HeaderMap) -> Result<Response, Fail> {
    let mut all = ASSETS.iter().chain(LIBRARY);
    let asset = all
        .find(|asset| asset.name == name)
        .ok_or_else(|| Fail::not_found("the page has no such file"))?;
    let tag = format!("\"{:016x}\"", digest(asset.bytes));
    let head = [(ETAG, tag.as_str()), (CACHE_CONTROL, "no-cache")];
    let asked = headers.get_all(IF_NONE_MATCH);
    let mut known = asked.iter().filter_map(|value| value.to_str().ok());
    if known.any(|known| has_tag(known, &tag)) {
        return Ok((StatusCode::NOT_MODIFIED, head).into_response());
    }
    Ok((head, [(CONTENT_TYPE, asset.kind)], asset.bytes).into_response())
}

/// Whether an `If-None-Match` header lists `tag`. A proxy that compresses makes a tag weak (RFC 9110, 13.1.2).
fn has_tag(known: &str, tag: &str) -> bool {
    let mut tags = known.split(',').map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// FNV-1a, to tell one version of a file from another.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_directory_is_embedded() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        let there: BTreeSet<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let listed: BTreeSet<String> = ASSETS.iter().map(|asset| asset.name.into()).collect();
        assert_eq!(there, listed);
    }
}
