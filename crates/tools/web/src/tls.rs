//! TLS: the certificate of the server, and the authorities of client certificates.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::args::WebArgs;

/// What accepts TLS connections; none without a certificate.
///
/// # Errors
/// A file cannot be read, or is not what its flag says.
pub(crate) fn acceptor(args: &WebArgs) -> Result<Option<TlsAcceptor>> {
    let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) else {
        return Ok(None);
    };
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .context("TLS")?;
    let builder = match &args.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(path)? {
                roots
                    .add(authority)
                    .with_context(|| format!("{}: no authority", path.display()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = verifier.build();
            builder.with_client_cert_verifier(
                verifier.with_context(|| format!("{}: no authorities", path.display()))?,
            )
        }
    };
    let place = key.display();
    let secret = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("{place}: no private key in PEM can be read there"))?;
    let mut config = builder
        .with_single_cert(certificates(cert)?, secret)
        .with_context(|| format!("{place} is not the key of {}", cert.display()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let place = path.display();
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("{place}: cannot read certificates"))?;
    if found.is_empty() {
        bail!("{place}: there is no certificate in PEM (-----BEGIN CERTIFICATE-----)");
    }
    Ok(found)
}
