//! How to connect to the server: the parameters of the URL, and the encryption. `sslmode` has the same meaning as in libpq, with one
//! difference: `require` also checks the server's certificate, because encryption alone does not protect against an attacker between client
//! and server.
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
pub struct ConnectionOptions {
    pub config: Config,
    pub tls: MakeRustlsConnect,
}

/// Why a URL cannot be used.
#[derive(Debug)]
pub enum UrlError {
    /// It is not a URL of PostgreSQL, or it has an unknown parameter.
    Malformed(tokio_postgres::Error),
    /// Its parameters for encryption are wrong or contradict each other.
    Encryption(&'static str),
}

/// Checks a URL without reading files or connecting.
pub fn check(url: &str) -> Result<(), UrlError> {
    parse(url).map(drop)
}

impl ConnectionOptions {
    /// Reads certificates only if the URL requires a check. `name` is the URL without its password.
    pub fn read(url: &str, name: &str) -> Result<Self, StoreError> {
        let (mut config, root) = parse(url).map_err(|error| match error {
            UrlError::Malformed(error) => StoreError::Broken(format!("{name}: {error}")),
            UrlError::Encryption(why) => StoreError::Broken(format!("{name}: {why}")),
        })?;
        // A Unix socket is never encrypted, and has no host name for a certificate.
        if !config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_))) {
            config.ssl_mode(SslMode::Disable);
        }
        let provider = Arc::new(ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match config.get_ssl_mode() {
            SslMode::Require => trusted(root.as_deref(), provider.clone())
                .map_err(|why| StoreError::Untrusted(format!("{name}: {why}")))?,
            _ => Arc::new(AcceptAnyServer(provider.clone())),
        };
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::Broken(format!("{name}: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        if config.get_ssl_negotiation() == SslNegotiation::Direct {
            // A server that is addressed with TLS directly requires the protocol's name.
            tls.alpn_protocols = vec![b"postgresql".to_vec()];
        }
        Ok(Self { config, tls: MakeRustlsConnect::new(tls) })
    }
}

/// The URL without `sslrootcert` and `verify-full`, which the client library does not know; and the file of `sslrootcert`.
fn parse(url: &str) -> Result<(Config, Option<PathBuf>), UrlError> {
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
    // libpq's name for the system's CA store.
    let root = root.filter(|root| root != "system").map(PathBuf::from);
    if root.as_ref().is_some_and(|root| !root.is_absolute()) {
        return Err(UrlError::Encryption("sslrootcert must be an absolute path, such as /etc/ssl/ours.pem"));
    }
    let mode = match (mode.as_deref(), &root) {
        (Some("disable"), None) => SslMode::Disable,
        (Some("prefer") | None, None) => SslMode::Prefer,
        // A CA file in the URL means that the certificate is checked.
        (Some("require" | "verify-full"), _) | (None, Some(_)) => SslMode::Require,
        (Some("disable" | "prefer"), Some(_)) => {
            return Err(UrlError::Encryption("sslrootcert needs sslmode=require; set that, or remove sslrootcert"));
        }
        (Some(_), _) => {
            return Err(UrlError::Encryption("sslmode must be disable, prefer, require or verify-full"));
        }
    };
    let mut config: Config = format!("{before}?{}", rest.join("&")).parse().map_err(UrlError::Malformed)?;
    config.ssl_mode(mode);
    Ok((config, root))
}

/// A URL without its parameters, and the parameters. Split where the client library splits it.
fn split(url: &str) -> (&str, &str) {
    let after = |mark: &str, from: usize| url[from..].find(mark).map_or(from, |at| from + at + mark.len());
    let host = after("@", after("://", 0));
    match url[host..].find('?') {
        Some(at) => (&url[..host + at], &url[host + at + 1..]),
        None => (url, ""),
    }
}

/// Trusts the CA certificates in a file. By default the system's CA store is trusted.
fn trusted(root: Option<&Path>, provider: Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, String> {
    let (certificates, from) = match root {
        Some(file) => (certificates_in(file)?, format!("{} (sslrootcert)", file.display())),
        None => (rustls_native_certs::load_native_certs().certs, "the system".to_owned()),
    };
    let mut roots = RootCertStore::empty();
    // Certificates of the system that cannot be parsed are skipped.
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

/// Accepts every server, for `prefer`. An attacker between client and server could also claim that the server has no encryption, so
/// checking signatures or certificates would not help.
#[derive(Debug)]
struct AcceptAnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyServer {
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
    fn the_parameters_for_encryption_are_read() {
        for (parameters, mode, root) in [
            ("", SslMode::Prefer, None),
            ("?sslmode=disable", SslMode::Disable, None),
            ("?sslmode=prefer&connect_timeout=3", SslMode::Prefer, None),
            ("?sslmode=require", SslMode::Require, None),
            ("?sslmode=verify-full&sslrootcert=system", SslMode::Require, None),
            ("?application_name=x&sslrootcert=%2Fa%20b.pem&sslmode=require", SslMode::Require, Some("/a b.pem")),
            ("?sslrootcert=/a.pem", SslMode::Require, Some("/a.pem")),
        ] {
            let (config, named) = parse(&format!("postgres://ann:a?b@host/db{parameters}")).unwrap();
            assert_eq!((config.get_ssl_mode(), named.as_deref()), (mode, root.map(Path::new)), "{parameters}");
            assert_eq!((config.get_password(), config.get_dbname()), (Some(&b"a?b"[..]), Some("db")), "{parameters}");
        }
    }

    #[test]
    fn unknown_or_contradictory_parameters_are_refused() {
        for parameters in
            ["sslmode=verify-ca", "sslmode=", "sslrootcert=a.pem", "sslmode=prefer&sslrootcert=/a.pem", "sslmode=allow"]
        {
            let checked = check(&format!("postgres://ann@host/db?{parameters}"));
            assert!(matches!(checked, Err(UrlError::Encryption(_))), "{parameters}: {checked:?}");
        }
    }

    #[test]
    fn a_unix_socket_needs_no_encryption() {
        let options = ConnectionOptions::read("postgres://ann@%2Ftmp/db?sslmode=require", "x").unwrap();
        assert_eq!(options.config.get_ssl_mode(), SslMode::Disable);
    }
}
