/** The QR code of its library, as a separate module for `lazy`. */
export { QRCodeSVG as default } from 'qrcode.react';
