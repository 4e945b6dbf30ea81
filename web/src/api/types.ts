// The names under which the page knows what the API speaks of. The shapes are generated: `npm run types`.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type AgentView = Schemas["AgentView"];
export type Activity = Schemas["Activity"];
export type Evidence = Schemas["Evidence"];
export type RunView = Schemas["RunView"];
export type Usage = Schemas["UsageAmount"];
/** As events of the log have it. */
export type LoggedUsage = Schemas["Usage"];
export type Money = Schemas["Money"];
export type Overview = Schemas["Overview"];
export type AgentOverview = Schemas["AgentOverview"];
export type QuestLine = Schemas["QuestLine"];
export type QuestDocument = Schemas["QuestDocument"];
export type StepDocument = Schemas["StepDocument"];
export type StepStatus = Schemas["StepStatus"];
export type WardRun = Schemas["WardRun"];
export type GivenSignal = Schemas["GivenSignal"];
export type QuestionView = Schemas["QuestionView"];
export type About = Schemas["About"];
export type PermissionView = Schemas["PermissionView"];
export type LivePiece = Schemas["LivePiece"];
export type BudgetView = Schemas["BudgetView"];
export type MailThreads = Schemas["MailThreads"];
export type IdentityList = Schemas["DocList"];
export type ProjectLine = Schemas["ProjectLine"];
export type EventMap = Schemas["EventMap"];
export type SeatList = Schemas["SeatList"];
export type SeatView = Schemas["SeatView"];
export type ThreadLine = Schemas["ThreadLine"];
export type ThreadView = Schemas["ThreadView"];
export type SeenMail = Schemas["SeenMail"];
export type UsagePart = Schemas["UsagePart"];
export type MessageView = Schemas["MessageView"];
export type HistoryView = Schemas["HistoryView"];
export type WhyView = Schemas["WhyView"];
export type UsageView = Schemas["UsageView"];
export type Rescued = Schemas["Rescued"];
export type Restored = Schemas["Restored"];
export type ResumeView = Schemas["ResumeView"];
export type KillPreview = Schemas["KillPreview"];
export type ChangeSet = Schemas["Changes"];
export type FileDiff = Schemas["FileDiff"];
export type EventObject = Schemas["EventObject"];
export type EventCount = Schemas["EventCount"];
export type EventPage = Schemas["EventPage"];
export type NewQuest = Schemas["NewQuest"];
export type Trouble = Schemas["Trouble"];
export type QuestDefaults = Schemas["QuestDefaults"];
export type TriedWard = Schemas["TriedWard"];
export type TrialView = Schemas["TrialView"];
export type ContextUse = Schemas["ContextUse"];
export type ErrorDetail = Schemas["ErrorDetail"];
export type EventType = EventObject["type"];
/** An event of one type. */
export type EventOf<T extends EventType> = Extract<EventObject, { type: T }>;
