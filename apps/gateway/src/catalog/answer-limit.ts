/** MiB of a plain answer. 2,048 embeddings of 3,072 numbers exceed it: they are about 130 MB of JSON. */
export const MAX_ANSWER_MIB = 96;
