// In a file of its own, because the content security policy allows no inline script. Credentials stay in this page.
SwaggerUIBundle({
  url: 'docs/api/openapi.yaml',
  dom_id: '#swagger-ui',
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
