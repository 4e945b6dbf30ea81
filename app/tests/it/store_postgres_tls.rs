//! Encrypted connections to the shared store: to whom they are made, to whom not, and what is said then.

use crate::support::postgres::{Database, Server};
use crate::support::proxy::Proxy;
use crate::support::rows::{append, read, rows};
use crate::support::runtime;
use hatchery::daemon;
use hatchery::store::{self, Store, StoreError};
use hatchery_core::EventId;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;

/// Long enough for any machine, and never waited for when all is well.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that calls itself `localhost`, and what an authority of its own says to that.
struct House {
    database: Database,
    folder: TempDir,
}

impl House {
    fn new() -> Self {
        let (authority, ours) = authority();
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &ours).unwrap();
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("ca.pem"), authority).unwrap();
        Self { database: Server::encrypted(&server.pem(), &key.serialize_pem()).database(), folder }
    }

    fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    fn open(&self, host: &str, parameters: &str) -> Result<Arc<dyn Store>, StoreError> {
        store::open(&self.database.encrypted_url(host, parameters).parse().unwrap(), runtime())
    }
}

/// An authority's certificate, and its pen.
fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), Issuer::new(params, key))
}

#[test]
fn everything_goes_over_an_encrypted_line_to_a_server_that_shows_who_it_is() {
    let house = House::new();
    let trust = format!("sslmode=verify-full&sslrootcert={}", house.authority().display());
    let (ours, theirs) = (house.open("localhost", &trust).unwrap(), house.open("localhost", &trust).unwrap());
    let (hint, hints) = mpsc::channel();
    ours.on_foreign_append(Arc::new(move || hint.send(()).unwrap_or_default()));
    hints.recv_timeout(PATIENCE).expect("the connection for notifications stands");
    append(&*theirs, 0, &[], &rows("a", 3)).unwrap();
    hints.recv_timeout(PATIENCE).expect("others are heard");
    assert_eq!(read(&*ours, 0).len(), 3);
}

#[test]
fn a_server_that_does_not_show_who_it_is_gets_nothing() {
    let house = House::new();
    let other = house.folder.path().join("other.pem");
    std::fs::write(&other, authority().0).unwrap();
    let right = house.authority();
    for (host, parameters, expected) in [
        ("localhost", "sslmode=require".to_owned(), "certificate"),
        ("localhost", format!("sslrootcert={}", other.display()), "invalid peer certificate"),
        ("db.example", format!("sslmode=require&sslrootcert={}", right.display()), "not valid for name"),
        ("localhost", "sslmode=require&sslrootcert=/nowhere/ca.pem".to_owned(), "/nowhere/ca.pem (sslrootcert)"),
    ] {
        let refused = house.open(host, &parameters).unwrap_err();
        assert!(matches!(&refused, StoreError::Untrusted(why) if why.contains(expected)), "{parameters}: {refused:?}");
        let report = daemon::explain(refused.into()).to_string();
        assert!(report.contains("is not trusted") && report.contains("hint: name the file"), "{report}");
    }
}

#[test]
fn a_server_that_demands_encryption_is_told_from_one_that_has_none() {
    let house = House::new();
    let refused = house.open("localhost", "sslmode=disable").unwrap_err();
    assert!(matches!(&refused, StoreError::Broken(why) if why.contains("set sslmode=require")), "{refused:?}");

    let plain = Server::shared().database();
    let url = Proxy::to(&plain).url(&plain);
    let refused = store::open(&format!("{url}?sslmode=require").parse().unwrap(), runtime()).unwrap_err();
    assert!(matches!(&refused, StoreError::Broken(why) if why.contains("does not support TLS")), "{refused:?}");
}

/// Without a word about it the line is encrypted where it can be, and whoever answers is believed.
#[test]
fn unasked_it_takes_what_the_server_offers() {
    let house = House::new();
    let (encrypted, plain) = (house.open("localhost", "").unwrap(), Server::shared().database());
    let plain = store::open(&Proxy::to(&plain).url(&plain).parse().unwrap(), runtime()).unwrap();
    for store in [encrypted, plain] {
        assert_eq!(append(&*store, 0, &[], &rows("a", 1)).unwrap(), EventId(1));
    }
}
