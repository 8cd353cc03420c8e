//! The page: files of the directory `assets`, in the binary.

use axum::extract::Path;
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
    "index.html" "text/html; charset=utf-8",
];

/// `GET /`.
pub(crate) async fn index(headers: HeaderMap) -> Result<Response, Fail> {
    answer("index.html", &headers)
}

/// `GET /assets/NAME`.
pub(crate) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Fail> {
    answer(&name, &headers)
}

fn answer(name: &str, headers: &HeaderMap) -> Result<Response, Fail> {
    let asset = ASSETS
        .iter()
        .find(|asset| asset.name == name)
        .ok_or_else(|| Fail::not_found("the page has no such file"))?;
    let tag = format!("\"{:016x}\"", digest(asset.bytes));
    let head = [(ETAG, tag.as_str()), (CACHE_CONTROL, "no-cache")];
    let asked = headers.get_all(IF_NONE_MATCH);
    if asked.iter().any(|known| known == tag.as_str()) {
        return Ok((StatusCode::NOT_MODIFIED, head).into_response());
    }
    Ok((head, [(CONTENT_TYPE, asset.kind)], asset.bytes).into_response())
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
