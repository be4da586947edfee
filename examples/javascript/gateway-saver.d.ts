import type { BaseCheckpointSaver, SerializerProtocol } from "@langchain/langgraph-checkpoint";

export interface GatewaySaverOptions {
  /** The bearer token, or a function that returns one. */
  token?: string | (() => string | Promise<string>);
  /** The key of `configurable`, or of the metadata, that names the owner of a thread. Enters threads in the directory. */
  ownerFrom?: string;
  /** For how many seconds to retry a request; 60 by default. */
  retrySeconds?: number;
  serde?: SerializerProtocol;
}

/** A checkpointer that stores its threads through the gateway of langgraph-dynamodb. */
export declare class GatewaySaver extends BaseCheckpointSaver {
  constructor(url: string, options?: GatewaySaverOptions);
  getTuple: BaseCheckpointSaver["getTuple"];
  list: BaseCheckpointSaver["list"];
  put: BaseCheckpointSaver["put"];
  putWrites: BaseCheckpointSaver["putWrites"];
  deleteThread: BaseCheckpointSaver["deleteThread"];
}

/** An error that the gateway answered with, or no answer. */
export declare class GatewayError extends Error {
  constructor(message: string, problem?: { type?: string; status?: number; requestId?: string; cause?: unknown });
  /** The class of the error, such as "ThreadBusyError". */
  readonly type: string;
  /** The HTTP status. */
  readonly status?: number;
  /** The id by which the service's log names the request. */
  readonly requestId?: string;
}
