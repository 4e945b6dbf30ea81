//! What a supervisor writes into the launcher's inbox: deliveries, answers to requests for permission, the model, the end of the input, and
//! the stop. Reading the output of the process is in `supervisor.rs`.

use super::{SuperviseError, Supervisor};
use crate::blocking::blocking;
use crate::held_process::millis;
use crate::run_folder::{LaunchKind, LauncherRequest};
use crate::runner::delivery_text::delivery_text;
use hatchery_core::permission::{PendingState, PermissionDecision, PermissionRequest};
use hatchery_core::run::{Delivery, DeliveryKind, DesiredState, Readiness, wire_name};
use std::collections::BTreeSet;
use std::io;

/// The id of the line that chooses the model. Each process gets it once.
const CHOOSE_MODEL: &str = "model";

/// The part of the launcher's inbox that decides what is sent next. It does not contain the texts, which may be long.
#[derive(Debug, Default)]
pub(super) struct SentRequests {
    /// The ids of the lines that the process has not confirmed yet.
    written: BTreeSet<String>,
    input_closed: bool,
    stopped: bool,
}

impl SentRequests {
    fn note(&mut self, request: &LauncherRequest) {
        match request {
            LauncherRequest::Write { id, .. } => {
                self.written.insert(id.clone());
            }
            LauncherRequest::CloseInput => self.input_closed = true,
            LauncherRequest::Stop { .. } => self.stopped = true,
        }
    }
}

impl Supervisor {
    /// Sends the launcher the requests that are not in its inbox yet.
    pub(super) async fn send_requests(&mut self, desired: &DesiredState) -> Result<(), SuperviseError> {
        let mut sent = match self.sent.take() {
            Some(sent) => sent,
            None => self.requests_in_inbox().await?,
        };
        let requests = match desired {
            DesiredState::Stopped if sent.stopped => Vec::new(),
            DesiredState::Stopped => {
                vec![LauncherRequest::Stop { grace_ms: millis(self.context.settings().stop_grace) }]
            }
            DesiredState::Running { last: true, .. } if sent.input_closed => Vec::new(),
            DesiredState::Running { last: true, .. } => vec![LauncherRequest::CloseInput],
            DesiredState::Running { upto: None, .. } => Vec::new(),
            DesiredState::Running { .. } => self.unsent_deliveries(&mut sent).await?,
        };
        if !requests.is_empty() {
            requests.iter().for_each(|request| sent.note(request));
            let process = self.process.clone();
            // If this fails, the inbox is read again before anything else is sent.
            blocking(move || process.send(&requests)).await?;
        }
        self.sent = Some(sent);
        Ok(())
    }

    async fn requests_in_inbox(&self) -> io::Result<SentRequests> {
        let folder = self.process.folder().clone();
        blocking(move || {
            // An earlier daemon may have been killed after it wrote a request and before it woke the launcher.
            folder.wake_launcher();
            let mut sent = SentRequests::default();
            folder.requests()?.iter().for_each(|request| sent.note(request));
            Ok(sent)
        })
        .await
    }

    /// The deliveries that the process has not confirmed and that are not in the inbox. Empty if there is no harness session yet.
    async fn unsent_deliveries(&mut self, sent: &mut SentRequests) -> Result<Vec<LauncherRequest>, SuperviseError> {
        let Some(LaunchKind::Agent { session, copy_of, capabilities, .. }) = self.launch_kind().await? else {
            return Ok(Vec::new());
        };
        let session = session.filter(|_| capabilities.chooses_session_id).or_else(|| self.started_session());
        self.holds_back = session.is_none();
        let Some(session) = session else { return Ok(Vec::new()) };
        let handle = &self.context.handle;
        let agent = self.of.agent;
        let waiting =
            handle.view().conversation(agent).map(|conversation| conversation.waiting.clone()).unwrap_or_default();
        let decided = self.decided_permissions();
        let deliveries = waiting.iter().map(|delivery| wire_name(delivery.id));
        let unconfirmed: BTreeSet<String> = deliveries.chain(decided.iter().map(|(id, _, _)| id.clone())).collect();
        sent.written.retain(|id| unconfirmed.contains(id) || id == CHOOSE_MODEL);
        let mut requests = Vec::new();
        // Answers come before messages, because the process waits for an answer in the middle of a turn.
        for (id, request, decision) in decided {
            if !sent.written.contains(&id) {
                let line = self.harness()?.permission(&request, &decision);
                requests.push(LauncherRequest::Write { id, line });
            }
        }
        let model = self.due_model(&session)?;
        let mut room = match capabilities.one_at_a_time {
            // No message is sent before the model is chosen.
            _ if model.is_some() => 0,
            true => self.takes_another(waiting.iter().copied(), sent),
            false => usize::MAX,
        };
        if let Some(line) = model.filter(|_| !sent.written.contains(CHOOSE_MODEL)) {
            requests.push(LauncherRequest::Write { id: CHOOSE_MODEL.to_owned(), line });
        }
        for delivery in waiting {
            let id = wire_name(delivery.id);
            if sent.written.contains(&id) {
                continue;
            }
            if delivery.what != DeliveryKind::Interrupt {
                let Some(left) = room.checked_sub(1) else {
                    self.holds_back = true;
                    continue;
                };
                room = left;
            }
            let line = match delivery_text(handle, agent, delivery, copy_of.is_some()).await? {
                None => self.harness()?.interrupt(Some(&session), &id),
                Some(text) => self.harness()?.message(Some(&session), &id, &text),
            };
            requests.push(LauncherRequest::Write { id, line });
        }
        Ok(requests)
    }

    /// The line that chooses the model, if the process has not confirmed the model yet.
    fn due_model(&self, session: &str) -> Result<Option<String>, SuperviseError> {
        let world = self.context.handle.view();
        let Some(run) = world.run(self.of.agent).filter(|run| run.attempt.readiness == Readiness::ConfirmsModel) else {
            return Ok(None);
        };
        let (how, model) = (run.attempt.capabilities.model_choice, run.spec.model.clone());
        let harness = self.harness()?;
        Ok(model.and_then(|model| harness.choose_model(how, session, &model)))
    }

    /// How many messages can be sent now to a process that accepts one per turn: none while a message is on its way or a turn runs.
    fn takes_another(&self, mut waiting: impl Iterator<Item = Delivery>, sent: &SentRequests) -> usize {
        let is_written = |delivery: Delivery| sent.written.contains(&wire_name(delivery.id));
        let on_its_way = waiting.any(|delivery| delivery.what != DeliveryKind::Interrupt && is_written(delivery));
        let world = self.context.handle.view();
        // A process that is ready counts as being in its first turn before it has received a message.
        let in_turn = world.run(self.of.agent).is_some_and(|run| run.attempt.in_turn && run.attempt.has_confirmed);
        usize::from(!on_its_way && !in_turn)
    }

    /// The decisions about permissions that the process has not confirmed, with the id of each in the inbox.
    fn decided_permissions(&self) -> Vec<(String, PermissionRequest, PermissionDecision)> {
        let world = self.context.handle.view();
        let run = world.run(self.of.agent).filter(|run| run.attempt_id(self.of.agent) == self.of);
        let pending = run.into_iter().flat_map(|run| &run.attempt.permissions);
        pending
            .filter_map(|pending| match &pending.state {
                PendingState::Decided { at, decision } => {
                    Some((wire_name(*at), pending.request.clone(), decision.clone()))
                }
                PendingState::New | PendingState::Asked { .. } => None,
            })
            .collect()
    }
}
