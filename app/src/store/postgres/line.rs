//! The line to the server: what the URL says of it, and how it is protected. `sslmode` is read as others read it, with one
//! difference: `require` also checks who answers, because encryption to whoever answers keeps no secret.
//!
//! | `sslmode` | encrypted | the server's certificate |
//! |---|---|---|
//! | `disable` | never | |
//! | `prefer`, or none | if the server can | is not checked |
//! | `require`, `verify-full` | always | is checked, with its name |

use crate::store::StoreError;
use percent_encoding::percent_decode_str;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, SslNegotiation};
use tokio_postgres_rustls::MakeRustlsConnect;

#[derive(Clone)]
pub struct Line {
    pub config: Config,
    pub tls: MakeRustlsConnect,
}

/// Why a URL cannot be used.
#[derive(Debug)]
pub enum Unfit {
    /// It is none, or says something unknown.
    Url(tokio_postgres::Error),
    Protection(&'static str),
}

/// Whether a URL can be used, as far as it can be told without looking at files or servers.
pub fn check(url: &str) -> Result<(), Unfit> {
    read(url).map(drop)
}

impl Line {
    /// Reads certificates only for a URL that asks for them to be checked.
    pub fn to(url: &str, name: &str) -> Result<Self, StoreError> {
        let (mut config, root) = read(url).map_err(|unfit| match unfit {
            Unfit::Url(error) => StoreError::Broken(format!("{name}: {error}")),
            Unfit::Protection(why) => StoreError::Broken(format!("{name}: {why}")),
        })?;
        // A socket in a folder is never encrypted. An address without a name has nothing that a certificate could be for.
        if !config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_))) {
            config.ssl_mode(SslMode::Disable);
        }
        let provider = Arc::new(ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match config.get_ssl_mode() {
            SslMode::Require => trusted(root.as_deref(), provider.clone())
                .map_err(|why| StoreError::Untrusted(format!("{name}: {why}")))?,
            _ => Arc::new(Anybody(provider.clone())),
        };
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::Broken(format!("{name}: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        if config.get_ssl_negotiation() == SslNegotiation::Direct {
            // A server that is greeted without a question first wants to hear what for.
            tls.alpn_protocols = vec![b"postgresql".to_vec()];
        }
        Ok(Self { config, tls: MakeRustlsConnect::new(tls) })
    }
}

/// Takes `sslrootcert` and `verify-full` out of the URL, which the client does not know.
fn read(url: &str) -> Result<(Config, Option<PathBuf>), Unfit> {
    let (before, parameters) = split(url);
    let (mut mode, mut root, mut rest) = (None, None, Vec::new());
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match &*percent_decode_str(key).decode_utf8_lossy() {
            "sslmode" => mode = Some(percent_decode_str(value).decode_utf8_lossy().into_owned()),
            "sslrootcert" => root = Some(percent_decode_str(value).decode_utf8_lossy().into_owned()),
            _ => rest.push(parameter),
        }
    }
    // What libpq calls the authorities that the system trusts.
    let root = root.filter(|root| root != "system").map(PathBuf::from);
    if root.as_ref().is_some_and(|root| !root.is_absolute()) {
        return Err(Unfit::Protection("sslrootcert has to be a whole path, such as /etc/ssl/ours.pem"));
    }
    let mode = match (mode.as_deref(), &root) {
        (Some("disable"), None) => SslMode::Disable,
        (Some("prefer") | None, None) => SslMode::Prefer,
        // Whoever names an authority wants it asked.
        (Some("require" | "verify-full"), _) | (None, Some(_)) => SslMode::Require,
        (Some("disable" | "prefer"), Some(_)) => {
            return Err(Unfit::Protection("sslrootcert is asked with sslmode=require only: say that, or leave it out"));
        }
        (Some(_), _) => {
            return Err(Unfit::Protection("sslmode has to be disable, prefer, require or verify-full"));
        }
    };
    let mut config: Config = format!("{before}?{}", rest.join("&")).parse().map_err(Unfit::Url)?;
    config.ssl_mode(mode);
    Ok((config, root))
}

/// A URL without its parameters, and these: divided where the client divides it.
fn split(url: &str) -> (&str, &str) {
    let after = |mark: &str, from: usize| url[from..].find(mark).map_or(from, |at| from + at + mark.len());
    let host = after("@", after("://", 0));
    match url[host..].find('?') {
        Some(at) => (&url[..host + at], &url[host + at + 1..]),
        None => (url, ""),
    }
}

/// Believes the authorities in a file, or without one those that the system believes.
fn trusted(root: Option<&Path>, provider: Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, String> {
    let (certificates, from) = match root {
        Some(file) => (certificates_in(file)?, format!("{} (sslrootcert)", file.display())),
        None => (rustls_native_certs::load_native_certs().certs, "the system".to_owned()),
    };
    let mut roots = RootCertStore::empty();
    // Systems carry authorities that cannot be read any more; the others count.
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        return Err(format!("{from} has no certificate of an authority"));
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| format!("the certificates of {from} cannot be used: {error}"))
}

fn certificates_in(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error| format!("{} (sslrootcert) cannot be read: {error}", file.display());
    CertificateDer::pem_file_iter(file).map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)
}

/// Takes every server for the right one: with `prefer`, who can stand in the middle can also claim that the server knows no
/// encryption. So it does not look at the signatures either, and gets along with whatever certificate there is.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_url_says_of_protection_is_heard() {
        for (parameters, mode, root) in [
            ("", SslMode::Prefer, None),
            ("?sslmode=disable", SslMode::Disable, None),
            ("?sslmode=prefer&connect_timeout=3", SslMode::Prefer, None),
            ("?sslmode=require", SslMode::Require, None),
            ("?sslmode=verify-full&sslrootcert=system", SslMode::Require, None),
            ("?application_name=x&sslrootcert=%2Fa%20b.pem&sslmode=require", SslMode::Require, Some("/a b.pem")),
            ("?sslrootcert=/a.pem", SslMode::Require, Some("/a.pem")),
        ] {
            let (config, named) = read(&format!("postgres://ann:a?b@host/db{parameters}")).unwrap();
            assert_eq!((config.get_ssl_mode(), named.as_deref()), (mode, root.map(Path::new)), "{parameters}");
            assert_eq!((config.get_password(), config.get_dbname()), (Some(&b"a?b"[..]), Some("db")), "{parameters}");
        }
    }

    #[test]
    fn protection_that_would_not_be_what_it_seems_is_refused() {
        for parameters in
            ["sslmode=verify-ca", "sslmode=", "sslrootcert=a.pem", "sslmode=prefer&sslrootcert=/a.pem", "sslmode=allow"]
        {
            let unfit = check(&format!("postgres://ann@host/db?{parameters}"));
            assert!(matches!(unfit, Err(Unfit::Protection(_))), "{parameters}: {unfit:?}");
        }
    }

    #[test]
    fn a_socket_needs_no_protection() {
        let line = Line::to("postgres://ann@%2Ftmp/db?sslmode=require", "x").unwrap();
        assert_eq!(line.config.get_ssl_mode(), SslMode::Disable);
    }
}
