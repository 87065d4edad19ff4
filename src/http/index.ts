/** `offloop/http`: large JSON over HTTP without garbage for V8. Needs the package undici. */

export { createClient, type Client, type ClientOptions, type PostOptions, type Response } from './client.ts'
export type { BodyParseOptions, ResponseBody } from './body.ts'
export type { ResponseHeaders } from './receiver.ts'
export type { Compression, RequestOptions } from './request.ts'
