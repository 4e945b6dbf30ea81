//! The connection to the client. This module answers requests before the handshake itself: newer clients first send `server/discover`, and
//! need the answer that there is no such method before they send `initialize`.

use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::io;
use tokio::io::{Stdin, Stdout};

const DISCOVER: &str = "server/discover";

pub struct ClientTransport(AsyncRwTransport<RoleServer, Stdin, Stdout>);

impl ClientTransport {
    /// Standard output carries the protocol, and nothing else may write to it.
    pub fn on_standard_streams() -> Self {
        let (input, output) = rmcp::transport::stdio();
        Self(AsyncRwTransport::new_server(input, output))
    }
}

impl Transport<RoleServer> for ClientTransport {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.0.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            match self.0.receive().await? {
                JsonRpcMessage::Request(request) if request.request.method() == DISCOVER => {
                    let none = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, DISCOVER, None);
                    // If an answer cannot be sent, the client has ended.
                    self.0.send(JsonRpcMessage::error(none, Some(request.id))).await.ok()?;
                }
                message => return Some(message),
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        self.0.close()
    }
}
